r"""Characters as \uXXXX: those that a source writes so are written so in its translations."""

import re

_WRITTEN = re.compile(r"\\[uU]([0-9A-Fa-f]{4})")


def as_escape(character: str, form: str = "\\u%04x") -> str:
    """Return a character as one escape, or as two of a surrogate pair."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(form % int.from_bytes(units[index : index + 2]) for index in range(0, len(units), 2))


class EscapeStyle:
    """Which characters a source escapes, and how; all beyond ASCII if it has only such ones escaped.

    Those in ASCII are escaped if `others` has them, and those beyond in any case with `is_ascii`.
    """

    def __init__(self, source: str, others: str = "", *, is_ascii: bool = False, form: str = "\\u%04x") -> None:
        found = set(_WRITTEN.findall(source))
        self._form = form.replace("x", "X") if any(digits != digits.lower() for digits in found) else form
        characters = {character for digits in found if (character := chr(int(digits, 16))) > "\x7f" or character in others}
        is_ascii |= source.isascii() and max(characters, default="") > "\x7f"
        escaped = "".join(map(re.escape, characters)) + "\x80-\U0010ffff" * is_ascii
        self._escaped = re.compile(f"[{escaped}]") if escaped else None

    def __call__(self, text: str) -> str:
        """Return the text with escapes, all else as it is."""
        if self._escaped is None:
            return text
        return self._escaped.sub(lambda match: as_escape(match[0], self._form), text)
