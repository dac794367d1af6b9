"""Texts of cells that formulas of the same spreadsheet name, such as `"Yes"` in `=IF(A1="Yes";1;0)`, stay.

Where a formula makes an address of text, as `INDIRECT(A1&"!B2")`, names of sheets and ranges stay, too.
"""

import re

from service.documents.document import has_words

_STRING = re.compile(r'((?:INDIRECT|HYPERLINK)\(\s*+)?"((?:[^"]|"")*)"', re.IGNORECASE)
# An address within the file, as Excel and LibreOffice write it.
_ADDRESS = re.compile(
    r"#?\$?(?:'((?:[^']|'')+)'|(\w[\w.]*?))[!.]\$?[A-Z]{1,3}\$?\d{1,7}(?::[!.]?\$?[A-Z]{1,3}\$?\d{1,7})?"
)
_OPERATOR = re.compile(r"<>|[<>]=?|=")
_MAX_TOLD = 5
_MAX_CHARACTERS = 40


class NamedTexts:
    """The texts that formulas name, and those of them that cells had."""

    def __init__(self) -> None:
        self._named: set[str] = set()
        self._places: set[str] = set()
        self._has_addresses = False
        self._found: dict[str, None] = {}

    def add(self, *texts: str) -> None:
        self._named.update(map(_compared, texts))

    def add_place(self, name: str) -> None:
        self._places.add(_compared(name))

    def add_formula(self, formula: str) -> None:
        """Take the strings of a formula, without the operators of conditions, and the parts of one that is a list."""
        self._has_addresses |= "INDIRECT(" in formula.upper()
        for is_address, string in _STRING.findall(formula):
            text = string.replace('""', '"')
            if not is_address:
                self.add(_OPERATOR.sub("", text, count=1) if _OPERATOR.match(text) else text)
            if f'"{string}"' == formula.strip():
                self.add(*text.split(","))

    def has(self, text: str) -> bool:
        own = _compared(text)
        address = _ADDRESS.fullmatch(text.strip())
        is_address = address is not None and _compared((address[1] or address[2]).replace("''", "'")) in self._places
        is_named = own in self._named or is_address or (self._has_addresses and own in self._places)
        if is_named and has_words(text):
            self._found[text.strip()] = None
        return is_named

    @property
    def notes(self) -> list[str]:
        if not self._found:
            return []
        told = ", ".join(f'"{_printable(text)}"' for text in list(self._found)[:_MAX_TOLD])
        more = f" and {len(self._found) - _MAX_TOLD} more" if len(self._found) > _MAX_TOLD else ""
        return [f"Cells were left as they are where formulas or tables refer to their text: {told}{more}."]


def _compared(text: str) -> str:
    return text.strip().casefold()


def _printable(text: str) -> str:
    """Return the beginning of a text, printable in an HTTP header or on a terminal."""
    shown = (sign if sign.isprintable() else " " for sign in text[:_MAX_CHARACTERS])
    return " ".join("".join(shown).split())
