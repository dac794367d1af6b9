"""What a call may ask for, as options of a command: parsed into the client's `RequestFields`."""

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import click

from dragoman_client import Options, Priority, RequestFields, SplitSentences, Term

Command = TypeVar("Command", bound=Callable[..., Any])

_DECODING_OPTIONS = tuple(each.name for each in fields(Options) if each.name != "return_scores")
_DECODING = (
    click.option("--beam-size", type=int, help="Hypotheses kept alive: 1 is fastest. Default: the model's."),
    click.option("--length-penalty", type=float, help="Above 0 favours longer translations. Default: the model's."),
    click.option("--num-hypotheses", type=int, help="Print this many candidates per text, with line number and score."),
    click.option("--max-output-tokens", type=int, help="Most tokens per segment. Default: the model's limit."),
    click.option("--temperature", type=float, help="Above 0: draw tokens by chance instead of searching. Default: 0."),
    click.option("--top-k", type=int, help="With --temperature: draw from so many tokens. Default: 64."),
    click.option("--top-p", type=float, help="With --temperature: draw from this share of probability. Default: 1."),
    click.option("--seed", type=click.IntRange(0, 2**64 - 1), help="With --temperature: the same seed draws the same."),
    click.option("--max-repeats", type=int, help="End what repeats itself more often. Default: 0, never."),
    click.option(
        "--max-length-ratio",
        type=float,
        help="End what has more tokens than this per token of the text. Default: 0, never.",
    ),
)


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
    """Give a command these options; it gets `request_fields: RequestFields` in their stead.

    Raises, when the command is called:
        UsageError: one lacks another.
    """

    @functools.wraps(command)
    def with_fields(
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
        decoding = {option: others.pop(option) for option in _DECODING_OPTIONS}
        is_ranked = decoding["num_hypotheses"] is not None
        request_fields = RequestFields(
            model=model,
            model_version=model_version,
            options=Options(**decoding, return_scores=is_ranked or None),
            priority=Priority(priority),
            split_sentences=SplitSentences(split_sentences.replace("-", "_")),
            preserve_formatting=preserve_formatting,
            glossary=glossary,
            terms=term,
            strict=strict,
        )
        return command(request_fields=request_fields, **others)

    for option in reversed(_OTHERS + _DECODING):
        with_fields = option(with_fields)
    return with_fields  # type: ignore[return-value]
