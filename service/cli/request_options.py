"""What a call may ask for, as options of a command: parsed into the client's `Wishes`."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from service.client import Wishes
from service.domain.options import OPTIONS, Option, RequestedOptions
from service.domain.translation import Priority, SplitSentences, Term

Command = TypeVar("Command", bound=Callable[..., Any])

_MAX_INT32 = 2**31 - 1


def _flag(option: Option) -> Callable[[Command], Command]:
    """Return the flag of a decoding option; the server checks its range, unless the message can't carry the value."""
    low, high = option.low, option.high
    kind = click.IntRange(int(low), int(high)) if low is not None and high and high > _MAX_INT32 else option.kind
    needs = "Needs --temperature. " if option.needs_sampling else ""
    text = f"{option.help} {needs}Allowed: {option.allowed()}. Default: {option.default_words}."
    return click.option(option.flag, type=kind, help=text)


# Candidates are printed with their scores, so asking for candidates asks for scores.
_DECODING = {name: _flag(option) for name, option in OPTIONS.items() if name != "return_scores"}


class _TermType(click.ParamType[Term]):
    name = "term"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Term:
        source, equals, target = value.partition("=")
        if not source.strip():
            self.fail(f"{value!r} names no term; give SOURCE=TARGET, or SOURCE alone to leave it as it is.", param, ctx)
        return Term(source, target if equals else None)


_OTHERS = (
    click.option("--model", default="", metavar="NAME", help="Model to use. Default: the server's first that fits."),
    click.option("--model-version", default="", metavar="V", help="Version of --model to use. Default: the highest."),
    click.option("--glossary", default="", metavar="NAME", help="Glossary of the server's to follow."),
    click.option(
        "--term",
        type=_TermType(),
        multiple=True,
        metavar="SOURCE[=TARGET]",
        help="Translate SOURCE as TARGET, or leave it as it is. May be given several times; comes before --glossary.",
    ),
    click.option(
        "--split-sentences",
        type=click.Choice([each.value.replace("_", "-") for each in SplitSentences]),
        default=SplitSentences.ON.value,
        show_default=True,
        help="Translate a text sentence by sentence; no-newlines: also those that go on after a line end.",
    ),
    click.option("--preserve-formatting", is_flag=True, help="End mark and first letter's case as in the text."),
    click.option("--strict", is_flag=True, help="Refuse what is too long for the model instead of cutting it up."),
    click.option(
        "--priority",
        type=click.Choice([priority.value for priority in Priority]),
        default=Priority.NORMAL.value,
        show_default=True,
        help="Whose turn it is when the server is busy.",
    ),
)


def request_options(command: Command) -> Command:
    """Give a command these options; it gets `wishes: Wishes` in their stead.

    Raises, when the command is called:
        UsageError: one lacks another.
    """

    @functools.wraps(command)
    def with_wishes(
        *,
        model: str,
        model_version: str,
        glossary: str,
        term: tuple[Term, ...],
        split_sentences: str,
        preserve_formatting: bool,
        strict: bool,
        priority: str,
        **others: Any,
    ) -> Any:
        if model_version and not model:
            raise click.UsageError("--model-version needs --model.")
        decoding = {option: others.pop(option) for option in _DECODING}
        is_ranked = decoding["num_hypotheses"] is not None
        wishes = Wishes(
            model=model,
            model_version=model_version,
            options=RequestedOptions(**decoding, return_scores=is_ranked or None),
            priority=Priority(priority),
            split_sentences=SplitSentences(split_sentences.replace("-", "_")),
            preserve_formatting=preserve_formatting,
            glossary=glossary,
            terms=term,
            strict=strict,
        )
        return command(wishes=wishes, **others)

    for option in reversed((*_OTHERS, *_DECODING.values())):
        with_wishes = option(with_wishes)
    return with_wishes  # type: ignore[return-value]
