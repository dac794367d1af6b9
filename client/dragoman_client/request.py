"""Fields of a call besides texts and languages, and the checks that need no server."""

import difflib
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypedDict, TypeVar

from dragoman_client.options import MimeType, Options, Placeholder, Priority, SplitSentences, Term

_MAX_QUOTED = 60

Item = TypeVar("Item")


class RequestFields(TypedDict, total=False):
    """The fields of `TranslateRequest` that a call may set by keyword; `proto/dragoman/v1/translation.proto` lists all.

    An empty `model` selects the server's closest match for the language pair, an empty `model_version` its highest.
    """

    model: str
    model_version: str
    options: Options | None
    priority: Priority
    mime_type: MimeType
    split_sentences: SplitSentences
    preserve_formatting: bool
    target_prefixes: Sequence[str]
    glossary: str
    terms: Sequence[Term]
    placeholders: Sequence[Placeholder]
    return_alignments: bool
    strict: bool
    keep_other_languages: bool
    labels: Mapping[str, str]


_TYPES = typing.get_type_hints(RequestFields)
_OPTIONS = tuple(each.name for each in fields(Options))


def check_fields(given: Mapping[str, Any]) -> None:
    """Reject unknown keywords, and values of the wrong type.

    Raises:
        TypeError: a keyword is unknown, or a value has the wrong type.
    """
    for name, value in given.items():
        if name not in _TYPES:
            raise TypeError(f"{name} is not an argument of this call; {_advice(name)}")
        expected = _TYPES[name]
        origin = typing.get_origin(expected)
        if origin is Sequence:
            listed(name, value, typing.get_args(expected)[0])
        elif origin is Mapping:
            _check_labels(name, value)
        elif not isinstance(value, expected):
            kind = next(iter(typing.get_args(expected)), expected)
            raise TypeError(f"{name} is {_quoted(value)}; give {_described(kind)}.")


def listed(name: str, values: Iterable[Item], kind: type[Item]) -> list[Item]:
    """Return the values as a list.

    Raises:
        TypeError: they are a string or a single item, or not all of that type.
    """
    if isinstance(values, str | bytes | kind):
        raise TypeError(f"{name} is {_quoted(values)}; give a list, such as [{_quoted(values)}].")
    try:
        items = list(values)
    except TypeError:
        raise TypeError(f"{name} is {_quoted(values)}; give a list of {kind.__name__}.") from None
    for index, item in enumerate(items):
        if not isinstance(item, kind):
            raise TypeError(f"{name}[{index}] is {_quoted(item)}; give {_described(kind)}.")
    return items


def _check_labels(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is {_quoted(value)}; give a dict of strings.")
    for each in (*value.keys(), *value.values()):
        if not isinstance(each, str):
            raise TypeError(f"{name} holds {_quoted(each)}; give a dict of strings.")


def _advice(name: str) -> str:
    if name in _OPTIONS:
        return f"give options=Options({name}=...)."
    near = difflib.get_close_matches(name, (*_TYPES, *_OPTIONS), n=1)
    return f"did you mean {near[0]}?" if near else f"allowed: {', '.join(_TYPES)}."


def _described(kind: type) -> str:
    members = getattr(kind, "__members__", None)
    if members:
        return "one of " + ", ".join(f"{kind.__name__}.{member}" for member in members)
    return {str: "a string", bool: "True or False"}.get(kind, f"{kind.__name__}(...)")


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_QUOTED else f"{text[: _MAX_QUOTED - 3]}..."
