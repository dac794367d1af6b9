"""Language codes: which of the served codes a caller's BCP 47 code means."""

import re
from collections.abc import Iterable

_WELL_FORMED = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")


def is_well_formed(code: str) -> bool:
    """Whether `code` looks like a BCP 47 code: a language and optional subtags, such as `pt-BR`."""
    return len(code) <= 64 and _WELL_FORMED.fullmatch(code) is not None


def same_language(code: str, other: str) -> bool:
    """Whether two codes are the same but for upper and lower case and `_` for `-`."""
    return folded(code) == folded(other)


def match_language(code: str, served: Iterable[str]) -> str | None:
    """Return the one of the `served` codes, in its own spelling, that `code` means; `None` if there is none."""
    return next((candidate for candidate in served if same_language(candidate, code)), None)


def folded(code: str) -> str:
    """What codes that mean the same language have in common."""
    return code.replace("_", "-").casefold()
