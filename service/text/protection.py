"""What must not be left to the model: placeholders and terms, put in their places whatever it says."""

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
    """A part of a source, what must stand for it in the translation, and how to flag it where its place was guessed."""

    start: int
    end: int
    target: str
    flag: Flag


@dataclass(frozen=True, slots=True)
class Edit:
    """A part of an old text that was replaced, and where what replaced it stands in the new one."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class Offsets:
    """Positions in a text before parts of it were replaced, as positions after that."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        """`edits` are in order and apart; between them the texts are the same."""
        self.edits = tuple(edits)
        self._starts = [edit.old_start for edit in edits]

    def span(self, start: int, end: int) -> Span:
        """Where a part of the old text is in the new one; what was replaced in part counts as a whole."""
        if not self.edits:
            return Span(start, end)
        edit = self._before(bisect_right(self._starts, start))
        new_start = edit.new_start if start < edit.old_end else start + edit.new_end - edit.old_end
        edit = self._before(bisect_left(self._starts, end))
        new_end = edit.new_end if end <= edit.old_end else end + edit.new_end - edit.old_end
        return Span(new_start, max(new_start, new_end))

    def is_replaced(self, start: int, end: int) -> bool:
        """Whether a part of the old text lies within one that was replaced."""
        return end <= self._before(bisect_right(self._starts, start)).old_end

    def _before(self, index: int) -> Edit:
        return self.edits[index - 1] if index else Edit(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Restored:
    """A translation with everything in its place, and what should be looked at.

    `places` tells where each protected part's target is in `text`, in the order of the source. `source` turns positions
    in what the model read into positions in the original source, `target` positions in what it wrote into `text`'s.
    """

    text: str
    flags: tuple[Flag, ...]
    places: tuple[Span, ...]
    source: Offsets
    target: Offsets
    spans: tuple[Protected, ...]

    def alignment(self, alignment: Iterable[AlignedSpan]) -> tuple[AlignedSpan, ...]:
        """Turn an alignment of what the model read and wrote into one of original source and `text`.

        A protected part is aligned to its target, and to nothing else.
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
    """A source in which a reserved symbol of the model's stands for each protected part; `text` is what it reads."""

    text: str
    spans: tuple[Protected, ...]
    symbols: tuple[str, ...]
    source: Offsets

    def restore(self, translated: str, alignment: Sequence[AlignedSpan] = ()) -> Restored:
        """Put each symbol's target in its place.

        Of a symbol that stands there several times the first one counts. One that is missing takes the place of
        another's repetition, or of a symbol that nobody asked for, else the one that `alignment`, from `self.text` to
        `translated`, or its place in the source suggests; its part is flagged, and so is one that was repeated. What
        looks like a protected placeholder beside that is taken out.
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
    """`spans`, and what of `unknown` is in none of them, to stay as it is; all are in order, and either apart."""
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
    """A part that stays as it is, if there is any."""
    return [Protected(start, end, text[start:end], Flag.UNKNOWN)] if text[start:end].strip() else []


def find_protected(text: str, *indexes: TermIndex, kept: Sequence[Span] = ()) -> list[Protected]:
    """Placeholders and terms of a source, in order and apart; a term within a placeholder is none.

    `kept` are parts that stay as they are in any case, in order and apart: what touches one of them is none either.
    """
    found = _verbatim(text, find_placeholders(text))
    if indexes:
        terms = (Protected(term.start, term.end, term.target, Flag.TERM) for term in find_terms(text, *indexes))
        found = _beside(found, terms)
    return _beside(_verbatim(text, kept), found) if kept else found


def _verbatim(text: str, spans: Iterable[Span]) -> list[Protected]:
    return [Protected(*span, text[span.start : span.end], Flag.PLACEHOLDER) for span in paced(spans)]


def _beside(first: Sequence[Protected], others: Iterable[Protected]) -> list[Protected]:
    """All of `first`, and of the others those that touch none of them; both are in order and apart."""
    spans = list(first)
    ends = [span.end for span in first]
    for span in paced(others):
        following = bisect_right(ends, span.start)
        if following == len(ends) or first[following].start >= span.end:
            spans.append(span)
    return sorted(spans, key=lambda span: span.start)


def protect(text: str, spans: Sequence[Protected], symbols: Sequence[str]) -> ProtectedText | None:
    """Put the model's reserved `symbols` in place of the `spans`, which are in order and apart, and nothing else.

    Each gets one of its own, and white space stays as it is: so they stand in training pairs, where a symbol takes the
    place of one word. Only between a word and unknown characters, which may touch words as placeholders do not, are
    spaces. Returns `None` if there are too few symbols, or the text holds one itself.
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
    """Put each protected part's target in its place in a translation by a model without reserved symbols.

    Where a target stands in `translated` already (a placeholder also with other white space or case), that is its
    place. Else it replaces what `alignment`, from `text` to `translated`, gives for the source's part, unknown
    characters only words that come from nothing else; else it is put where the source suggests, and flagged. A
    placeholder that the model repeated is flagged, and its repetitions taken out.
    """
    places: dict[int, Span] = {}
    flags: set[Flag] = set()
    waiting: dict[tuple[Flag, str], list[int]] = {}
    for index, span in enumerate(spans):
        waiting.setdefault((span.flag, _plain(span.target, span.flag)), []).append(index)
    likely = set(find_placeholders(translated))  # "%s" of "100%sure" is the last to be taken for one
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
    """What a target and a form of it that is taken for it have in common."""
    return "".join(target.split()).casefold() if flag is Flag.PLACEHOLDER else target


def _any_of(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(set(texts), key=len, reverse=True))) or "(?!)"


@functools.lru_cache(maxsize=16)  # a model's symbols are always the same
def _any_symbol(symbols: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(_any_of(symbols))


def _targets(spans: Sequence[Protected]) -> str:
    """A regular expression for the targets, the longest first: placeholders in any case and with any white space."""
    placeholders = {"".join(span.target.split()) for span in spans if span.flag is Flag.PLACEHOLDER}
    longest_first = sorted(placeholders, key=len, reverse=True)
    loose = "|".join(r"\s*".join(map(re.escape, placeholder)) for placeholder in longest_first) or "(?!)"
    exact = (
        f"(?P<{flag.value}>{_any_of(span.target for span in spans if span.flag is flag)})"
        for flag in (Flag.TERM, Flag.UNKNOWN)
    )
    return f"(?P<{Flag.PLACEHOLDER.value}>(?i:{loose}))|{'|'.join(exact)}"


class _Guesses:
    """Where in a translation something belongs that is not there."""

    def __init__(self, text: str, translated: str, alignment: Sequence[AlignedSpan], taken: Iterable[Span]) -> None:
        self._text = text
        self._translated = translated
        self._alignment = sorted(alignment, key=lambda part: (part.source_start, part.source_end, part.target_start))
        self._taken = sorted(span for span in taken if span.start < span.end)

    def aligned(self, source_start: int, source_end: int, *, is_alone: bool = False) -> Span | None:
        """The whole words that are aligned to a part of the source: the longest run of them that is free.

        Where the part `is_alone`, none that are aligned to another one too.
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
        """An empty part between two words."""
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
    """Write the targets into their places, take out what is too much, and note what has moved where."""
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
    """A place with the spaces beside it that the model wrote because `protect` put some where the source has none."""
    start, end = place
    if start == end:
        return place
    is_added_before = read[:1].isspace() and translated[max(0, start - 1) : start].isspace()
    is_added_after = read[-1:].isspace() and translated[end : end + 1].isspace()
    return Span(start - is_added_before, end + is_added_after)


class _Writer:
    """Copies a text with parts of it replaced, and without what nobody asked for."""

    def __init__(self, old: str, placeholders: Iterable[str], symbols: Iterable[str]) -> None:
        self.edits: list[Edit] = []
        self.left_out: set[str] = set()
        self._unwanted = (*placeholders, *symbols)
        self.old_end = 0  # how far the old text was copied
        self._old = old
        self._parts: list[str] = []
        self._length = 0
        self._last = ""

    def write(self, place: Span, target: str, is_apart_before: bool, is_apart_after: bool) -> Span:
        """Copy what is before a place, write the target there, and return where it stands.

        It is kept apart from words by spaces, if it was apart from them in the source.
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
        if unwanted.search(kept):  # what is around something unwanted makes another one
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
    """Whether a space belongs between a target and the character beside it, if there is one.

    What the model placed is only kept apart from words; what is inserted also from punctuation.
    """
    if not neighbour or is_unspaced(neighbour):
        return False
    return neighbour.isalnum() or (is_inserted and not neighbour.isspace() and neighbour not in _OPENING)
