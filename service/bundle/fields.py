"""Typed fields of a bundle's JSON files: dataclasses from parsed JSON, with errors that name the field."""

import dataclasses
import functools
import types
import typing
from typing import Any

from service.bundle.errors import BundleError
from service.domain.errors import shown

MAX_NAME_BYTES = 255  # of models, languages and files: the limit of file systems


def is_name(name: str) -> bool:
    """Return whether a name can be in a log line, a metric's label and a path."""
    return name.isprintable() and 0 < len(name.encode()) <= MAX_NAME_BYTES


def build(kind: Any, value: Any, where: str, name: str) -> Any:
    """Build a value of the annotated type `kind` from parsed JSON, or raise a BundleError that names the field."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise BundleError(f"{where}: {name} is {shown(value)}; expected an object.")
        hints = hints_of(typing.cast(type, kind))
        chosen = {}
        for item in dataclasses.fields(kind):
            if item.name in value:
                chosen[item.name] = build(hints[item.name], value[item.name], where, f"{name}.{item.name}")
            elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
                raise BundleError(f"{where}: {name}.{item.name} is missing.")
        return typing.cast(type, kind)(**chosen)
    if origin is tuple:
        if not isinstance(value, list):
            raise BundleError(f"{where}: {name} is {shown(value)}; expected a list.")
        return tuple(build(arguments[0], entry, where, f"{name}[{i}]") for i, entry in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise BundleError(f"{where}: {name} is {shown(value)}; expected an object.")
        for key in value:
            build(str, key, where, f"a key of {name}")
        return {key: build(arguments[1], entry, where, f"{name}[{shown(key)}]") for key, entry in value.items()}
    if isinstance(kind, types.UnionType):  # X | None
        return None if value is None else build(arguments[0], value, where, name)
    if kind is Any:
        return value
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise BundleError(f"{where}: {name} is {shown(value)}; expected {kind.__name__}.")
    if isinstance(value, str) and not is_unicode(value):
        raise BundleError(f"{where}: {name} is {shown(value)}, which is not valid Unicode.")
    return value


@functools.cache  # few classes; a manifest may contain thousands of objects of one of them
def hints_of(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def is_unicode(text: str) -> bool:
    """Return whether a text is valid Unicode: JSON allows lone surrogates; files, messages and tokenizers don't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
