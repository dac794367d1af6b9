"""The white space beside protected parts, in a translation as in its source."""

import re

from service.text.words import is_unspaced

_OPENING = frozenset("([{<\"'“„‘‚«‹¿¡「『（【/-–—")
_CLOSING = frozenset(",;:.!?…)]}%\"'”’»")
# Markup belongs to what it touches: its neighbours' letters may be other ones in the translation.
_MARKUP = re.compile(r"[<\[§\x1b]|\{[%/#]|\{\{[#/^]")
_LINE_END = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_LONGEST_WORD = 40
_END = re.compile(r"\w+\Z")
_BEGINNING = re.compile(r"\w+")


class Side:
    """What is before or after a part of a text: white space, and the sign beyond it, empty at an end of the text."""

    __slots__ = ("_at", "_is_before", "_text", "sign", "space")

    def __init__(self, text: str, place: int, *, is_before: bool, first: int = 0) -> None:
        """Look at the side of `place`; before it, from `first` on."""
        at = place
        if is_before:
            while at > first and text[at - 1].isspace():
                at -= 1
            self.space, self.sign = text[at:place], text[at - 1 : at] if at else ""
        else:
            while text[at : at + 1].isspace():
                at += 1
            self.space, self.sign = text[place:at], text[at : at + 1]
        self._at, self._text, self._is_before = at, text, is_before

    @property
    def is_word(self) -> bool:
        """Return whether there is a word of a script with spaces."""
        return self.sign.isalnum() and not is_unspaced(self.sign)

    @property
    def _word(self) -> str:
        """Return the word there, or at least the part of it that is near, or the sign."""
        at = self._at
        if self._is_before:
            found = _END.search(self._text[max(0, at - _LONGEST_WORD) : at])
        else:
            found = _BEGINNING.match(self._text, at, at + _LONGEST_WORD)
        return found[0] if found else self.sign

    def space_for(self, target: str, there: "Side", *, is_inserted: bool, is_joined: bool = False) -> str | None:
        """Return the white space for this side of a target in a translation; `None` leaves what there is.

        This is the source's side, `there` the same one of the target's place. Targets at a place that the model chose
        are separated only from words; inserted ones, for which there was none, also from punctuation before them. If it
        `is_joined`, another protected part touches this side.
        """
        if target.isspace():  # line ends
            return self.space
        if there.space:
            if is_inserted or not there.sign:
                return None
            if self.space:
                return self.space if self.space != " " and not _LINE_END.search(self.space) else None
            is_touched = there.is_word and self.is_word and _MARKUP.match(target) is not None
            return "" if is_touched or (there.sign == self.sign and there._word == self._word) else None
        if is_joined or not there.sign or is_unspaced(there.sign) or (not self.space and self.is_word):
            return None
        if there.sign.isalnum():
            return " "
        if is_inserted:
            return " " if self._is_before and not there.sign.isspace() and there.sign not in _OPENING else None
        return " " if self.space and self._is_before and there.sign in _CLOSING else None
