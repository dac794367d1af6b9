"""Options of documents as command-line options; each is for some formats only."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import click

from service.domain.errors import listed

Command = TypeVar("Command", bound=Callable[..., Any])


class _Flag(NamedTuple):
    """A command-line option for the field of `DocumentOptions` that it sets, and the formats that have it."""

    name: str  # of the command's parameter, and in DRAGOMAN_TRANSLATE_<NAME>
    flag: str
    field: str
    formats: tuple[str, ...]
    help: str
    settings: Mapping[str, Any]


_IS_FLAG: Mapping[str, Any] = {"is_flag": True}
_TABLES = ("tsv", "csv")
_FLAGS = (
    _Flag(
        "columns",
        "--column",
        "columns",
        _TABLES,
        "name of the column to translate, or its number from 1; may be repeated.",
        {"multiple": True, "metavar": "N|NAME"},
    ),
    _Flag("header", "--header", "has_header", _TABLES, "the first line has the names of the columns.", _IS_FLAG),
    _Flag(
        "encoding",
        "--encoding",
        "encoding",
        ("text", "tsv", "csv", "md", "srt", "vtt"),
        "encoding of the file, such as windows-1252.",
        {"metavar": "NAME"},
    ),
    _Flag("retranslate", "--retranslate", "has_all", ("po", "xliff"), "also what has a translation.", _IS_FLAG),
    _Flag(
        "front_matter",
        "--front-matter",
        "front_matter",
        ("md", "mdx"),
        "keys of its front matter to translate, such as title,description.",
        {"metavar": "KEY,..."},
    ),
    _Flag("attributes", "--attributes", "attributes", ("html",), "also alt, title and the like; set lang.", _IS_FLAG),
)


def document_options(command: Command) -> Command:
    """Add these options to a command, which receives `choices` instead: those that were given, by their names."""

    @functools.wraps(command)
    def with_choices(**others: Any) -> Any:
        given = {each.name: others.pop(each.name) for each in _FLAGS}
        return command(choices={name: value for name, value in given.items() if value}, **others)

    for each in reversed(_FLAGS):
        text = f"For {listed(each.formats)}: {each.help}"
        with_choices = click.option(each.flag, each.name, help=text, **each.settings)(with_choices)
    return with_choices  # type: ignore[return-value]


def fields_of(choices: Mapping[str, Any], format_name: str) -> dict[str, Any]:
    """Return the fields of `DocumentOptions` for the options of a document of this format.

    Raises:
        UsageError: the format has no such option, or needs one; or a value is none.
    """
    for each in _FLAGS:
        if each.name in choices and format_name not in each.formats:
            known = (" and " if len(each.formats) == 2 else ", ").join(each.formats)
            raise click.UsageError(f"{each.flag} is for --format {known}, and this is {format_name}.")
    fields = {each.field: choices[each.name] for each in _FLAGS if each.name in choices}
    if format_name in _TABLES and "columns" not in fields:
        raise click.UsageError(f"--format {format_name} needs --column NAME, a column to translate, or its number.")
    if encoding := fields.get("encoding"):
        try:
            "".encode(encoding)
        except LookupError:
            raise click.BadParameter(f"{encoding!r} is not the name of an encoding, such as windows-1252.") from None
    if keys := fields.get("front_matter"):
        fields["front_matter"] = tuple(key.strip() for key in keys.split(",") if key.strip())
    return fields
