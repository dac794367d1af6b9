"""What a raised or lowered sign is: a part of its word, as in `H₂O` and `10 m²`, or a mark behind it, as of a note."""

import enum
import re
from typing import NamedTuple

_DIGITS = re.compile(r"[+\-−–]?\d[\d.,\-−–]*")
_NOTE = re.compile(r"\[\w{1,6}\]|\(\d{1,4}\)|[*†‡§¶#®™©℠]{1,4}|(?:TM|SM)")
_CHARGE = re.compile(r"\d*[+\-−–]|[+\-−–]\d+")
# Of several letters, so that they might be words; single letters, and those with a capital within, are none.
_UNITS = frozenset(
    {
        *("mm", "cm", "dm", "km", "nm", "µm", "μm", "pm", "mi", "ft", "yd", "in", "ha", "kg", "mg", "ms", "ns", "ml"),
        *("cl", "dl", "hl", "kb", "mb", "gb", "hz", "pa", "mol", "lb", "oz", "rad", "sr"),
        *("ln", "lim", "max", "min", "mc"),
    }
)


class Sign(NamedTuple):
    """A sign without white space; one that is neither raised nor a link may still be a number or a note."""

    text: str
    is_raised: bool = True
    is_link: bool = False

    @property
    def is_number(self) -> bool:
        return _DIGITS.fullmatch(self.text) is not None

    @property
    def is_note(self) -> bool:
        """Return whether it is written as marks are: `[1]`, `(2)`, `*`, `TM`."""
        return _NOTE.fullmatch(self.text) is not None


class Use(enum.Enum):
    """What a sign is for."""

    MARK = enum.auto()
    PART = enum.auto()


def use_of(sign: Sign, left: str, right: str, before: str) -> Use | None:
    """Return whether a sign is a mark, or a part of the words that touch it, or neither (`None`).

    `before` is the character before it, if that is no white space.
    """
    if sign.is_note or (sign.is_raised and sign.is_link and len(sign.text) <= 4):
        return Use.MARK if before or sign.is_raised else None
    if not left and not right:
        is_short = len(sign.text) <= 2 or not any(map(str.isalpha, sign.text))
        return Use.MARK if sign.is_raised and is_short else None
    if all(_is_word(text) for text in (left, right) if text):
        if _CHARGE.fullmatch(sign.text) and len(left) <= 3:
            return Use.PART
        return None if left and right and not sign.is_number else Use.MARK
    return Use.PART


def _is_word(text: str) -> bool:
    """Return whether a text seems to be a word of a sentence, and not part of a formula, a unit or a number."""
    return len(text) > 1 and text.isalpha() and text.lower() not in _UNITS and text[1:] == text[1:].lower()
