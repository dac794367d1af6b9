"""Texts of cells that formulas of the same spreadsheet name, such as `"Yes"` in `=IF(A1="Yes";1;0)`.

Formulas stay as they are, so these texts do, too: else they would not be found any more.
"""

import re

from service.documents.document import has_words

_STRING = re.compile(r'"((?:[^"]|"")*)"')
_OPERATOR = re.compile(r"<>|[<>]=?|=")
_MAX_TOLD = 5
_MAX_CHARACTERS = 40


class NamedTexts:
    """The texts that are named, and those of them that cells had."""

    def __init__(self) -> None:
        self._named: set[str] = set()
        self._found: dict[str, None] = {}

    def add(self, *texts: str) -> None:
        self._named.update(text.strip().casefold() for text in texts)

    def add_formula(self, formula: str) -> None:
        """Take the strings of a formula, without the operators of conditions, and the parts of one that is a list."""
        for match in _STRING.finditer(formula):
            text = match[1].replace('""', '"')
            self.add(_OPERATOR.sub("", text, count=1) if _OPERATOR.match(text) else text)
            if match[0] == formula.strip():
                self.add(*text.split(","))

    def has(self, text: str) -> bool:
        """Return whether a cell's text stays as it is."""
        is_named = text.strip().casefold() in self._named
        if is_named and has_words(text):
            self._found[text.strip()] = None
        return is_named

    @property
    def notes(self) -> list[str]:
        if not self._found:
            return []
        told = ", ".join(f'"{_printable(text)}"' for text in list(self._found)[:_MAX_TOLD])
        more = f" and {len(self._found) - _MAX_TOLD} more" if len(self._found) > _MAX_TOLD else ""
        return [f"Cells were left as they are where formulas or tables name their text: {told}{more}."]


def _printable(text: str) -> str:
    """Return the beginning of a text as it may be in a header of HTTP, or on a terminal."""
    shown = (sign if sign.isprintable() else " " for sign in text[:_MAX_CHARACTERS])
    return " ".join("".join(shown).split())
