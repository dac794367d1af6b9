"""Fields of a `config.json` of transformers: their values, checked, and those that would make another model."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from export.architecture.config import MAX_SIZE

_STRANGE = re.compile(r"rope|rotary|relative|alibi|expert|sliding_window|mamba|adapter|lora", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TokenIds:
    """The special tokens of a model's target side."""

    pad: int
    eos: int
    unk: int
    decoder_start: int


def check_neutral(
    document: Mapping[str, Any],
    family: str,
    neutral: Mapping[str, tuple[Any, ...]],
    problems: list[str],
    known: Collection[str] = (),
) -> None:
    """Add fields to `problems` that make another model than those of `family` are.

    `neutral` has the harmless values of fields. Others named for features that the family lacks are problems, unless
    `known`.
    """
    for name, allowed in neutral.items():
        value = document.get(name)
        if value is not None and value not in allowed:
            problems.append(f"{name} is {value!r}; {family} models have {allowed[0] if allowed else 'none'}")
    for name, value in sorted(document.items()):
        if name not in known and _STRANGE.search(name) and value not in (None, False, 0, "", [], {}):
            problems.append(f"{name} is {str(value)[:60]!r}; {family} models have no such setting")


def size(document: Mapping[str, Any], name: str, problems: list[str], default: int | None = None) -> int:
    """Return a positive number; `default` if it is missing, unless that is `None`."""
    value = document.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SIZE:
        problems.append(f"{name} is {value!r}; expected a positive number")
        return 1
    return value


def choice(document: Mapping[str, Any], name: str, default: bool, problems: list[str]) -> bool:
    """Return true or false; `default` if it is missing."""
    value = document.get(name, default)
    if not isinstance(value, bool):
        problems.append(f"{name} is {value!r}; expected true or false")
        return default
    return value
