"""Options of a request, parsed into the client's `RequestFields`, and those of documents, each for some formats."""

import enum
import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import click

import dragoman_client
from dragoman_client import Options, Placeholder, RequestFields, Term
from service.documents.options import DOCUMENT_OPTIONS, DocumentOption, document_fields
from service.domain.options import OPTIONS, Option
from service.domain.translation import REQUEST_OPTIONS, RequestOption

Command = TypeVar("Command", bound=Callable[..., Any])

# The names of the command's parameters, and in DRAGOMAN_TRANSLATE_<NAME>.
_PARAMETERS = {name: name.removeprefix("has_") for name in DOCUMENT_OPTIONS}


def _flag(option: Option) -> Callable[[Command], Command]:
    """Return the flag of a decoding option; the server checks its range, unless the message can't hold the value."""
    if option.kind is bool:
        return click.option(
            f"{option.flag}/--no-{option.flag[2:]}",
            default=None,
            help=f"{option.help} Allowed: {option.allowed()}. Default: {option.default_words}.",
        )
    low, high = option.low, option.high
    kind = click.IntRange(int(low), int(high)) if low is not None and high and high >= 2**31 else option.kind
    needs = "Needs --temperature. " if option.needs_sampling else ""
    text = f"{option.help} {needs}Allowed: {option.allowed()}. Default: {option.default_words}."
    return click.option(option.flag, type=kind, help=text)


# Candidates are printed with their scores, so requesting candidates also requests scores.
_DECODING = {name: _flag(option) for name, option in OPTIONS.items() if name != "return_scores"}


class _TermType(click.ParamType[Term]):
    name = "term"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Term:
        source, equals, target = value.partition("=")
        if not source.strip():
            self.fail(f"{value!r} is not a term; give SOURCE=TARGET, or SOURCE alone to keep it unchanged.", param, ctx)
        return Term(source, target if equals else None)


_TERM = click.option(
    "--term",
    type=_TermType(),
    multiple=True,
    metavar="SOURCE[=TARGET]",
    help="Translate SOURCE as TARGET, or keep it unchanged. May be repeated; overrides --glossary.",
)


_PLACEHOLDER = click.option(
    "--placeholder",
    "placeholders",
    multiple=True,
    metavar="PATTERN",
    help="Keep text that matches this regular expression (RE2) unchanged. May be repeated.",
)


def _request_flag(option: RequestOption) -> Callable[[Command], Command]:
    """Return the flag of a request option: a switch, a choice with hyphens for underscores, or a string."""
    flag = f"--{option.name.replace('_', '-')}"
    if option.kind is bool:
        return click.option(flag, is_flag=True, help=option.help)
    if isinstance(option.default, enum.Enum):
        choice = click.Choice([_choice(each) for each in type(option.default)])
        return click.option(flag, type=choice, default=_choice(option.default), show_default=True, help=option.help)
    return click.option(flag, default=option.default, metavar=option.metavar, help=option.help)


def _choice(value: enum.Enum) -> str:
    return str(value.value).replace("_", "-")


_REQUEST = {name: _request_flag(option) for name, option in REQUEST_OPTIONS.items() if option.in_commands}


def request_options(command: Command) -> Command:
    """Add these options to a command, which receives `request_fields: RequestFields` instead."""

    @functools.wraps(command)
    def with_fields(*, term: tuple[Term, ...], placeholders: tuple[str, ...], **others: Any) -> Any:
        chosen = {name: _value(REQUEST_OPTIONS[name], others.pop(name)) for name in _REQUEST}
        if chosen["model_version"] and not chosen["model"]:
            raise click.UsageError("--model-version needs --model.")
        decoding = {option: others.pop(option) for option in _DECODING}
        is_ranked = decoding["num_hypotheses"] is not None
        options = Options(**decoding, return_scores=is_ranked or None)
        own = tuple(map(Placeholder, placeholders))
        request_fields = cast(RequestFields, {**chosen, "options": options, "terms": term, "placeholders": own})
        return command(request_fields=request_fields, **others)

    for option in reversed((*_REQUEST.values(), _TERM, _PLACEHOLDER, *_DECODING.values())):
        with_fields = option(with_fields)
    return with_fields  # type: ignore[return-value]


def _value(option: RequestOption, given: Any) -> Any:
    """Convert a flag's value for the client: its enums have the same names as the domain's."""
    if not isinstance(option.default, enum.Enum):
        return given
    return getattr(dragoman_client, type(option.default).__name__)(given.replace("-", "_"))


def _document_flag(name: str, option: DocumentOption) -> Callable[[Command], Command]:
    given: dict[str, Any] = {"is_flag": True}
    if option.kind is not bool:
        given = {"multiple": option.kind is list, "metavar": option.metavar}
    return click.option(option.flag, _PARAMETERS[name], help=option.help, **given)


def document_options(command: Command) -> Command:
    """Add these options to a command, which receives `choices` instead: those that were given, by their names."""

    @functools.wraps(command)
    def with_choices(**others: Any) -> Any:
        given = {name: others.pop(parameter) for name, parameter in _PARAMETERS.items()}
        return command(choices={name: value for name, value in given.items() if value}, **others)

    for name, option in reversed(tuple(DOCUMENT_OPTIONS.items())):
        with_choices = _document_flag(name, option)(with_choices)
    return with_choices  # type: ignore[return-value]


def fields_of(choices: Mapping[str, Any], format_name: str) -> dict[str, Any]:
    """Return the fields of `DocumentOptions` for the options of a document of this format."""
    for name in choices:
        option = DOCUMENT_OPTIONS[name]
        if format_name not in option.formats:
            known = (" and " if len(option.formats) == 2 else ", ").join(option.formats)
            raise click.UsageError(f"{option.flag} is for --format {known}, and this is {format_name}.")
    if format_name in DOCUMENT_OPTIONS["columns"].formats and "columns" not in choices:
        raise click.UsageError(f"--format {format_name} needs --column NAME, a column to translate, or its number.")
    if encoding := choices.get("encoding"):
        try:
            "".encode(encoding)
        except LookupError:
            raise click.BadParameter(f"{encoding!r} is not the name of an encoding, such as windows-1252.") from None
    return document_fields(choices)
