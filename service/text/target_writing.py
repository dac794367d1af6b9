"""Writes the targets of protected parts into their places in a translation."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.domain.translation import AlignedSpan, Flag
from service.text.protected import Protected
from service.text.spans import Edit, Offsets, Span
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
    """The surroundings of a part before or after it: white space, and the sign beyond, empty at an end of the text."""

    __slots__ = ("_at", "_is_before", "_text", "sign", "space")

    def __init__(self, text: str, place: int, *, is_before: bool, first: int = 0) -> None:
        """Read the side of `place`; before it, from `first` on."""
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
        return self.sign.isalnum() and not is_unspaced(self.sign)

    @property
    def _word(self) -> str:
        """Return the adjacent word, or at least its near part, or the sign."""
        at = self._at
        if self._is_before:
            found = _END.search(self._text[max(0, at - _LONGEST_WORD) : at])
        else:
            found = _BEGINNING.match(self._text, at, at + _LONGEST_WORD)
        return found[0] if found else self.sign

    def space_for(self, target: str, there: "Side", *, is_inserted: bool, is_joined: bool = False) -> str | None:
        """Return the white space for this side of a target in a translation; `None` leaves what there is.

        This is the source's side, `there` the same side of the target's place. Targets at a place of the model's are
        separated only from words, inserted ones also from punctuation before them. If it `is_joined`, another protected
        part touches this side.
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


@dataclass(frozen=True, slots=True)
class Restored:
    """A translation with every target in its place, and flags for what should be reviewed.

    `places` are the positions in `text` of the protected parts' targets, in the order of the source. `source` maps
    positions from the model's input to the original source, `target` from its output to `text`.
    """

    text: str
    flags: tuple[Flag, ...]
    places: tuple[Span, ...]
    source: Offsets
    target: Offsets
    spans: tuple[Protected, ...]

    def alignment(self, alignment: Iterable[AlignedSpan]) -> tuple[AlignedSpan, ...]:
        """Convert an alignment of the model's input and output; a protected part is aligned to its target only."""
        aligned = [
            AlignedSpan(span.start, span.end, *place) for span, place in zip(self.spans, self.places, strict=True)
        ]
        for part in alignment:
            source, target = (part.source_start, part.source_end), (part.target_start, part.target_end)
            if not self.source.is_replaced(*source) and not self.target.is_replaced(*target):
                aligned.append(AlignedSpan(*self.source.span(*source), *self.target.span(*target)))
        return tuple(sorted(aligned, key=lambda part: (part.source_start, part.source_end, part.target_start)))


def alternation(texts: Iterable[str]) -> str:
    """Return a regular expression for any of the texts, longest first; for none of them, one that never matches."""
    return "|".join(map(re.escape, sorted(set(texts), key=len, reverse=True))) or "(?!)"


def write_targets(
    text: str,
    translated: str,
    spans: tuple[Protected, ...],
    places: dict[int, Span],
    flags: set[Flag],
    symbols: Sequence[str],
    source: Offsets,
) -> Restored:
    bounds = [0, *(position for read in source.edits for position in (read.old_start, read.old_end)), len(text)]
    unprotected = "\n".join(text[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True))
    targets = {span.target for span in spans if span.flag is Flag.PLACEHOLDER}
    placeholders = {target for target in targets if target not in unprotected}  # "%s" stays in "%s is 100%sure"
    writer = _Writer(translated, placeholders, symbols)
    new_places = [Span(0, 0)] * len(spans)
    for place, index in sorted((place, index) for index, place in places.items()):
        read = source.edits[index]
        whole = place
        if spans[index].flag is Flag.UNKNOWN:
            whole = _with_added_spaces(text[read.old_start : read.old_end], translated, place)
        whole = Span(max(whole.start, writer.old_end), max(whole.end, writer.old_end))
        is_next_to_another = index > 0 and source.edits[index - 1].old_end == read.old_start
        before = Side(text, read.old_start, is_before=True)
        after = Side(text, read.old_end, is_before=False)
        new_places[index] = writer.write(whole, spans[index].target, before, after, is_joined=is_next_to_another)
    new_text = writer.finish()
    if writer.left_out & placeholders:
        flags.add(Flag.PLACEHOLDER)
    ordered = tuple(flag for flag in Flag if flag in flags)
    return Restored(new_text, ordered, tuple(new_places), source, Offsets(writer.edits), spans)


def _with_added_spaces(read: str, translated: str, place: Span) -> Span:
    """Extend a place by adjacent spaces that the model wrote because `protect` added some that the source lacks."""
    start, end = place
    if start == end:
        return place
    is_added_before = read[:1].isspace() and translated[max(0, start - 1) : start].isspace()
    is_added_after = read[-1:].isspace() and translated[end : end + 1].isspace()
    return Span(start - is_added_before, end + is_added_after)


class _Writer:
    """Copies a text with parts of it replaced and unwanted symbols and placeholders removed."""

    def __init__(self, old: str, placeholders: Iterable[str], symbols: Iterable[str]) -> None:
        self.edits: list[Edit] = []
        self.left_out: set[str] = set()
        self._unwanted = (*placeholders, *symbols)
        self.old_end = 0  # end of the old text copied so far
        self._old = old
        self._parts: list[str] = []
        self._length = 0
        self._last = ""

    def write(self, place: Span, target: str, before: Side, after: Side, *, is_joined: bool) -> Span:
        """Copy the text before a place, write the target there, and return its position.

        `before` and `after` are the sides of the protected part in the source; its white space stays where the
        translation allows it.
        """
        is_inserted = place.start == place.end
        there = Side(self._old, place.start, is_before=True, first=self.old_end)
        if is_inserted and not there.space:
            there.sign = there.sign if place.start > self.old_end else self._last
        space = before.space_for(target, there, is_inserted=is_inserted, is_joined=is_joined)
        start = place.start if space is None else place.start - len(there.space)
        self._copy(start)
        new_start = self._length
        self._append(space or "")
        target_start = self._length
        self._append(target)
        target_end = self._length
        there = Side(self._old, place.end, is_before=False)
        space = after.space_for(target, there, is_inserted=is_inserted)
        self._append(space or "")
        end = place.end if space is None else place.end + len(there.space)
        self.edits.append(Edit(start, end, new_start, self._length))
        self.old_end = end
        return Span(target_start, target_end)

    def finish(self) -> str:
        self._copy(len(self._old))
        return "".join(self._parts)

    def _copy(self, end: int) -> None:
        gap = self._old[self.old_end : end]
        if any(text in gap for text in self._unwanted):
            self._copy_wanted(gap)
        else:
            self._append(gap)
        self.old_end = end

    def _copy_wanted(self, gap: str) -> None:
        unwanted = re.compile(alternation(self._unwanted))
        parts, gap_end = [], 0
        for found in unwanted.finditer(gap):
            self.left_out.add(found[0])
            is_between_spaces = gap[found.start() - 1 : found.start()].isspace() and not gap[found.end() :][:1].strip()
            start = max(gap_end, found.start() - is_between_spaces)
            parts.append((gap[gap_end:start], Span(start, found.end())))
            gap_end = found.end()
        kept = "".join([*(part for part, _ in parts), gap[gap_end:]])
        if unwanted.search(kept):  # a removal may join its surroundings to another unwanted one
            while unwanted.search(kept):
                kept = unwanted.sub("", kept)
            old_end = self.old_end + len(gap)
            self.edits.append(Edit(self.old_end, old_end, self._length, self._length + len(kept)))
            self._append(kept)
            return
        for part, (start, end) in parts:
            self._append(part)
            self.edits.append(Edit(self.old_end + start, self.old_end + end, self._length, self._length))
        self._append(gap[gap_end:])

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
        self._last = text[-1:] or self._last
