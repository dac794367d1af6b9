"""The licence that a model card states."""

import re
from pathlib import Path

CARD_NAME = "README.md"
UNKNOWN_LICENCE = "unknown"
_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*\n", re.DOTALL)
_LICENCE = re.compile(r"^licen[sc]e:\s*[\"']?([\w.+ -]+?)[\"']?\s*$", re.MULTILINE)


def licence_of(directory: Path) -> str:
    """Return the licence in the front matter of `README.md` in a checkpoint's folder, such as "apache-2.0"."""
    try:
        return stated_licence((directory / CARD_NAME).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return UNKNOWN_LICENCE


def stated_licence(text: str) -> str:
    """Return the licence in a card's front matter."""
    front_matter = _FRONT_MATTER.match(text)
    stated = _LICENCE.search(front_matter[1]) if front_matter else None
    return stated[1] if stated else UNKNOWN_LICENCE
