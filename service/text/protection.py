"""Placeholders and terms that must be in the translation whatever the model produces."""

import functools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.domain.checkpoint import paced
from service.domain.translation import AlignedSpan, Flag
from service.text.placeholders import find_placeholders
from service.text.scripts import is_unspaced
from service.text.spans import Span, inside
from service.text.terms import TermIndex, find_terms
from service.text.words import is_word_boundary

_OPENING = frozenset("([{<\"'“„‘‚«‹¿¡「『（【/-–—")
_FINAL = ".!?…。！？।॥؟:;,，：；\"'”’»)]} "


@dataclass(frozen=True, slots=True)
class Protected:
    """A part of a source, its required translation, and the flag to set if its position was guessed."""

    start: int
    end: int
    target: str
    flag: Flag


@dataclass(frozen=True, slots=True)
class Edit:
    """A part of an old text that was replaced, and the position of its replacement in the new text."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class Offsets:
    """Maps positions in a text to positions after parts of it were replaced."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        """Take `edits`, which are sorted and disjoint; between them the texts are the same."""
        self.edits = tuple(edits)
        self._starts = [edit.old_start for edit in edits]

    def span(self, start: int, end: int) -> Span:
        """Return the position in the new text of a part of the old one; partly replaced edits count as a whole."""
        if not self.edits:
            return Span(start, end)
        edit = self._before(bisect_right(self._starts, start))
        new_start = edit.new_start if start < edit.old_end else start + edit.new_end - edit.old_end
        edit = self._before(bisect_left(self._starts, end))
        new_end = edit.new_end if end <= edit.old_end else end + edit.new_end - edit.old_end
        return Span(new_start, max(new_start, new_end))

    def is_replaced(self, start: int, end: int) -> bool:
        """Return whether a part of the old text lies within a replaced one."""
        return end <= self._before(bisect_right(self._starts, start)).old_end

    def _before(self, index: int) -> Edit:
        return self.edits[index - 1] if index else Edit(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Restored:
    """A translation with every target in its place, and flags for what should be reviewed.

    `places` are the positions in `text` of the protected parts' targets, in the order of the source. `source` maps
    positions in the model's input to positions in the original source, `target` positions in its output to positions in
    `text`.
    """

    text: str
    flags: tuple[Flag, ...]
    places: tuple[Span, ...]
    source: Offsets
    target: Offsets
    spans: tuple[Protected, ...]

    def alignment(self, alignment: Iterable[AlignedSpan]) -> tuple[AlignedSpan, ...]:
        """Convert an alignment of the model's input and output into one of the original source and `text`.

        A protected part is aligned to its target only.
        """
        aligned = [
            AlignedSpan(span.start, span.end, *place) for span, place in zip(self.spans, self.places, strict=True)
        ]
        for part in alignment:
            source, target = (part.source_start, part.source_end), (part.target_start, part.target_end)
            if not self.source.is_replaced(*source) and not self.target.is_replaced(*target):
                aligned.append(AlignedSpan(*self.source.span(*source), *self.target.span(*target)))
        return tuple(sorted(aligned, key=lambda part: (part.source_start, part.source_end, part.target_start)))


@dataclass(frozen=True, slots=True)
class ProtectedText:
    """A source with the model's reserved symbols in place of protected parts; `text` is the model's input."""

    text: str
    spans: tuple[Protected, ...]
    symbols: tuple[str, ...]
    source: Offsets

    def restore(self, translated: str, alignment: Sequence[AlignedSpan] = ()) -> Restored:
        """Replace each symbol by its target.

        If a symbol occurs several times, the first occurrence counts. A missing one takes the place of another's
        repetition or of an unexpected symbol, else the one suggested by `alignment`, from `self.text` to `translated`,
        or by its position in the source. Parts whose symbols were missing or repeated are flagged. Further copies of
        protected placeholders are removed.
        """
        index_of = {symbol: index for index, symbol in enumerate(self.symbols[: len(self.spans)])}
        places: dict[int, Span] = {}
        spare: list[Span] = []
        flags: set[Flag] = set()
        for found in _any_symbol(self.symbols).finditer(translated):
            index = index_of.get(found[0])
            if index is not None and index not in places:
                places[index] = Span(*found.span())
            else:
                spare.append(Span(*found.span()))
                flags.add(Flag.PLACEHOLDER if index is None else self.spans[index].flag)
        missing = [index for index in range(len(self.spans)) if index not in places]
        flags.update(self.spans[index].flag for index in missing)
        places.update(zip(missing, spare, strict=False))
        guesses = _Guesses(self.text, translated, alignment, places.values())
        for index in missing[len(spare) :]:
            read = self.source.edits[index]
            places[index] = guesses.place(read.old_start, read.old_end)
        return _assemble(self.text, translated, self.spans, places, flags, self.symbols, self.source)


def beside_protected(spans: Sequence[Protected], unknown: Sequence[Span], text: str) -> list[Protected]:
    """Return `spans`, and the parts of `unknown` outside of them, to be kept unchanged; all sorted, each disjoint."""
    found = list(spans)
    following = 0
    for run in unknown:
        start, end = run
        while following < len(spans) and spans[following].start < end:
            span = spans[following]
            if span.end > start:
                found += _unknown(text, start, span.start)
                start = span.end
            if span.end > end:
                break
            following += 1
        found += _unknown(text, start, end)
    return sorted(found, key=lambda span: span.start)


def _unknown(text: str, start: int, end: int) -> list[Protected]:
    """Return a part that is kept unchanged, if it is more than white space."""
    return [Protected(start, end, text[start:end], Flag.UNKNOWN)] if text[start:end].strip() else []


def find_protected(text: str, *indexes: TermIndex, kept: Sequence[Span] = ()) -> list[Protected]:
    """Find a source's placeholders and terms, sorted and disjoint; a term within a placeholder does not count.

    `kept` are parts that are kept unchanged in any case, sorted and disjoint: no match may overlap one of them.
    """
    found = _verbatim(text, find_placeholders(text))
    if indexes:
        terms = (Protected(term.start, term.end, term.target, Flag.TERM) for term in find_terms(text, *indexes))
        found = _beside(found, terms)
    return _beside(_verbatim(text, kept), found) if kept else found


def _verbatim(text: str, spans: Iterable[Span]) -> list[Protected]:
    return [Protected(*span, text[span.start : span.end], Flag.PLACEHOLDER) for span in paced(spans)]


def _beside(first: Sequence[Protected], others: Iterable[Protected]) -> list[Protected]:
    """Return all of `first`, and those of `others` that overlap none of them; both are sorted and disjoint."""
    spans = list(first)
    ends = [span.end for span in first]
    for span in paced(others):
        following = bisect_right(ends, span.start)
        if following == len(ends) or first[following].start >= span.end:
            spans.append(span)
    return sorted(spans, key=lambda span: span.start)


def protect(text: str, spans: Sequence[Protected], symbols: Sequence[str]) -> ProtectedText | None:
    """Replace only the `spans`, which are sorted and disjoint, by the model's reserved `symbols`.

    Each span gets a symbol of its own. White space is unchanged, as in training pairs, where a symbol replaces one
    word. Only unknown characters, which unlike placeholders may be adjacent to words, are separated from them by
    spaces. Returns `None` if there are too few symbols, or the text contains one itself.
    """
    if len(spans) > len(symbols) or any(symbol in text for symbol in symbols):
        return None
    parts = []
    edits = []
    end = length = 0
    for span, symbol in zip(spans, symbols, strict=False):
        read = symbol
        if span.flag is Flag.UNKNOWN:
            before, after = text[max(end, span.start - 1) : span.start], text[span.end : span.end + 1]
            read = " " * _is_word(before) + symbol + " " * _is_word(after)
        parts += [text[end : span.start], read]
        length += span.start - end
        edits.append(Edit(length, length + len(read), span.start, span.end))
        length += len(read)
        end = span.end
    return ProtectedText("".join((*parts, text[end:])), tuple(spans), tuple(symbols), Offsets(edits))


def _is_word(neighbour: str) -> bool:
    return neighbour.isalnum() and not is_unspaced(neighbour)


def replace_aligned(
    text: str, spans: Sequence[Protected], translated: str, alignment: Sequence[AlignedSpan] = ()
) -> Restored:
    """Place each protected part's target in a translation by a model without reserved symbols.

    If `translated` already contains a target (for a placeholder, also with other white space or case), that is its
    place. Otherwise it replaces the words that `alignment`, from `text` to `translated`, links to the source's part;
    unknown characters replace only words without other links. Otherwise it is inserted at a position estimated from the
    source, and flagged. A placeholder that the model repeated is flagged, and its repetitions are removed.
    """
    places: dict[int, Span] = {}
    flags: set[Flag] = set()
    waiting: dict[tuple[Flag, str], list[int]] = {}
    for index, span in enumerate(spans):
        waiting.setdefault((span.flag, _plain(span.target, span.flag)), []).append(index)
    likely = set(find_placeholders(translated))  # "%s" of "100%sure" is the last choice
    matches = re.finditer(_targets(spans), translated)
    for found in sorted(matches, key=lambda found: (found.span() not in likely, found.start())):
        place = Span(*found.span())
        flag = Flag(found.lastgroup)
        indices = waiting.get((flag, _plain(found[0], flag)), [])
        if flag is not Flag.PLACEHOLDER and not all(is_word_boundary(translated, position) for position in place):
            continue
        if indices:
            index = next((index for index in indices if spans[index].target == found[0]), indices[0])
            indices.remove(index)
            places[index] = place
        elif place in likely or flag is Flag.UNKNOWN:
            flags.add(flag)
    guesses = _Guesses(text, translated, alignment, places.values())
    for index, span in enumerate(spans):
        is_alone = span.flag is Flag.UNKNOWN
        if index not in places and (aligned := guesses.aligned(span.start, span.end, is_alone=is_alone)):
            places[index] = aligned
    for index, span in enumerate(spans):
        if index not in places:
            places[index] = guesses.place(span.start, span.end)
            flags.add(span.flag)
    source = Offsets([Edit(span.start, span.end, span.start, span.end) for span in spans])
    return _assemble(text, translated, tuple(spans), places, flags, (), source)


def _plain(target: str, flag: Flag) -> str:
    """Return a key that a target shares with the forms of it that are accepted."""
    return "".join(target.split()).casefold() if flag is Flag.PLACEHOLDER else target


def _any_of(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(set(texts), key=len, reverse=True))) or "(?!)"


@functools.lru_cache(maxsize=16)  # a model's symbols never change
def _any_symbol(symbols: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(_any_of(symbols))


def _targets(spans: Sequence[Protected]) -> str:
    """Return a regular expression for the targets, longest first: placeholders in any case and with any white space."""
    placeholders = {"".join(span.target.split()) for span in spans if span.flag is Flag.PLACEHOLDER}
    longest_first = sorted(placeholders, key=len, reverse=True)
    loose = "|".join(r"\s*".join(map(re.escape, placeholder)) for placeholder in longest_first) or "(?!)"
    exact = (
        f"(?P<{flag.value}>{_any_of(span.target for span in spans if span.flag is flag)})"
        for flag in (Flag.TERM, Flag.UNKNOWN)
    )
    return f"(?P<{Flag.PLACEHOLDER.value}>(?i:{loose}))|{'|'.join(exact)}"


class _Guesses:
    """Estimates the positions in a translation of targets that it lacks."""

    def __init__(self, text: str, translated: str, alignment: Sequence[AlignedSpan], taken: Iterable[Span]) -> None:
        self._text = text
        self._translated = translated
        self._alignment = sorted(alignment, key=lambda part: (part.source_start, part.source_end, part.target_start))
        self._taken = sorted(span for span in taken if span.start < span.end)

    def aligned(self, source_start: int, source_end: int, *, is_alone: bool = False) -> Span | None:
        """Return the whole words aligned to a part of the source: the longest run of them that is free.

        If the part `is_alone`, words that are also aligned to another part are excluded.
        """
        parts = sorted(
            Span(part.target_start, part.target_end)
            for part in self._alignment
            if part.source_start < source_end and source_start < part.source_end and part.target_start < part.target_end
        )
        runs: list[Span] = []
        for part in parts:
            if runs and not self._translated[runs[-1].end : part.start].strip():
                runs[-1] = Span(runs[-1].start, max(runs[-1].end, part.end))
            else:
                runs.append(part)
        for run in sorted(runs, key=lambda run: (run.start - run.end, run.start)):
            start, end = run
            while not is_word_boundary(self._translated, start):
                start -= 1
            while not is_word_boundary(self._translated, end):
                end += 1
            is_free = not any(start < taken.end and taken.start < end for taken in self._taken)
            if is_alone and any(
                part.target_start < end
                and start < part.target_end
                and not source_start <= part.source_start <= part.source_end <= source_end
                for part in self._alignment
            ):
                continue
            if is_free and any(map(str.isalnum, self._translated[start:end])):
                self._taken = sorted([*self._taken, Span(start, end)])
                return Span(start, end)
        return None

    def place(self, source_start: int, source_end: int) -> Span:
        """Return an empty span between two words."""
        position = self._near(source_start, source_end)
        is_taken = inside(self._taken)
        length = len(self._translated)
        outward = (at for distance in range(length + 1) for at in (position - distance, position + distance))
        return next(
            Span(at, at) for at in outward if 0 <= at <= length and not is_taken(at) and self._is_between_words(at)
        )

    def _near(self, source_start: int, source_end: int) -> int:
        if not any(map(str.isalnum, self._text[:source_start])):
            return 0
        if not any(map(str.isalnum, self._text[source_end:])):
            return len(self._translated.rstrip(_FINAL))
        before = [part for part in self._alignment if part.source_start < source_end]
        if before:
            last = max(before, key=lambda part: (part.source_end, part.target_end))
            return last.target_start if last.source_end > source_start else last.target_end
        return round(len(self._translated) * source_start / len(self._text))

    def _is_between_words(self, position: int) -> bool:
        if not 0 < position < len(self._translated):
            return True
        before, after = self._translated[position - 1], self._translated[position]
        return before.isspace() or after.isspace() or is_word_boundary(self._translated, position)


def _assemble(
    text: str,
    translated: str,
    spans: tuple[Protected, ...],
    places: dict[int, Span],
    flags: set[Flag],
    symbols: Sequence[str],
    source: Offsets,
) -> Restored:
    """Write the targets into their places, remove unwanted copies, and record the edits."""
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
        is_apart_before = not is_next_to_another and not text[read.old_start - 1 : read.old_start].isalnum()
        is_apart_after = not text[read.old_end : read.old_end + 1].isalnum()
        new_places[index] = writer.write(whole, spans[index].target, is_apart_before, is_apart_after)
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

    def write(self, place: Span, target: str, is_apart_before: bool, is_apart_after: bool) -> Span:
        """Copy the text before a place, write the target there, and return its position.

        The target is separated from words by spaces if it was in the source.
        """
        self._copy(place.start)
        new_start = self._length
        is_inserted = place.start == place.end
        before = self._last if is_inserted else self._old[place.start - 1 : place.start]
        if is_apart_before and _wants_space(before, is_inserted):
            self._append(" ")
        start = self._length
        self._append(target)
        end = self._length
        if is_apart_after and _wants_space(self._old[place.end : place.end + 1], is_inserted=False):
            self._append(" ")
        self.edits.append(Edit(*place, new_start, self._length))
        self.old_end = place.end
        return Span(start, end)

    def finish(self) -> str:
        """Copy the rest, and return the new text."""
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
        unwanted = re.compile(_any_of(self._unwanted))
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


def _wants_space(neighbour: str, is_inserted: bool) -> bool:
    """Return whether a space belongs between a target and the adjacent character, if there is one.

    Targets at a place that the model chose are separated only from words; inserted ones also from punctuation.
    """
    if not neighbour or is_unspaced(neighbour):
        return False
    return neighbour.isalnum() or (is_inserted and not neighbour.isspace() and neighbour not in _OPENING)
