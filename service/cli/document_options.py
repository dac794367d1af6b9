"""Options of documents as command-line options; each is for some formats only."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from service.documents.options import DOCUMENT_OPTIONS, DocumentOption, document_fields

Command = TypeVar("Command", bound=Callable[..., Any])

# The names of the command's parameters, and in DRAGOMAN_TRANSLATE_<NAME>.
_PARAMETERS = {name: name.removeprefix("has_") for name in DOCUMENT_OPTIONS}


def _flag(name: str, option: DocumentOption) -> Callable[[Command], Command]:
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
        with_choices = _flag(name, option)(with_choices)
    return with_choices  # type: ignore[return-value]


def fields_of(choices: Mapping[str, Any], format_name: str) -> dict[str, Any]:
    """Return the fields of `DocumentOptions` for the options of a document of this format.

    Raises:
        UsageError: the format has no such option, or needs one; or a value is none.
    """
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
