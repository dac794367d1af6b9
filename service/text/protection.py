"""Protection: symbols replace protected parts before translation, and targets replace symbols afterwards."""

import functools
import re
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass

from service.domain.translation import AlignedSpan, Flag
from service.text.placeholders import find_placeholders
from service.text.protected import Protected
from service.text.spans import Edit, Offsets, Span, inside, replaced
from service.text.target_writing import Restored, alternation, write_targets
from service.text.words import is_unspaced, is_word_boundary

# Arguments without a number or a name are taken in order; "%%" and "%n" take none.
_ARGUMENT = re.compile(
    r"(?<!%)%[-+#0,' ]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh?|ll?|[qjztL])?(?:@|[A-Za-mo-z])|\{(?:[:!][^{}]*)?\}"
)
_TAG = re.compile(r"<(/?)([\w:.-]+)[^<>]*>|([\[{])(/?)([a-z]+)(?:[ =][^\[\]{}]*)?[\]}]")
_FINAL = ".!?…。！？।॥؟:;,，：；\"'”’»)]} "


@dataclass(frozen=True, slots=True)
class ProtectedText:
    """A source with the model's reserved symbols in place of protected parts; `text` is the model's input."""

    text: str
    spans: tuple[Protected, ...]
    symbols: tuple[str, ...]
    source: Offsets

    def restore(self, translated: str, alignment: Sequence[AlignedSpan] = ()) -> Restored:
        """Replace each symbol by its target.

        The first occurrence of a symbol counts. A missing one takes the place of a repeated or unexpected symbol, else
        the one suggested by `alignment`, from `self.text` to `translated`, or by its position in the source. Missing or
        repeated ones are flagged; further copies of protected placeholders are removed.
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
        guesses = PositionGuesses(self.text, translated, alignment, places.values())
        for index in missing[len(spare) :]:
            read = self.source.edits[index]
            places[index] = guesses.place(read.old_start, read.old_end)
        if keep_order(self.spans, places):
            flags.add(Flag.PLACEHOLDER)
        return write_targets(self.text, translated, self.spans, places, flags, self.symbols, self.source)


def protect(text: str, spans: Sequence[Protected], symbols: Sequence[str]) -> ProtectedText | None:
    """Replace only the `spans`, sorted and disjoint, each by its own of the model's reserved `symbols`.

    White space is unchanged, as in training pairs, where a symbol replaces one word. Only unknown characters and line
    ends, which unlike placeholders may touch words, are separated by spaces. Return `None` if there are too few
    symbols, or the text contains one itself.
    """
    if len(spans) > len(symbols) or any(symbol in text for symbol in symbols):
        return None
    parts: list[tuple[Span, str]] = []
    end = 0
    for span, symbol in zip(spans, symbols, strict=False):
        read = symbol
        if span.may_touch_words:
            before, after = text[max(end, span.start - 1) : span.start], text[span.end : span.end + 1]
            is_apart = str.strip if span.target.isspace() else _is_word
            read = " " * bool(is_apart(before)) + symbol + " " * bool(is_apart(after))
        parts.append((Span(span.start, span.end), read))
        end = span.end
    fed, edits = replaced(text, parts)
    return ProtectedText(fed, tuple(spans), tuple(symbols), Offsets.back(edits))


def _is_word(neighbour: str) -> bool:
    return neighbour.isalnum() and not is_unspaced(neighbour)


def replace_aligned(
    text: str, spans: Sequence[Protected], translated: str, alignment: Sequence[AlignedSpan] = ()
) -> Restored:
    """Place each protected part's target in a translation by a model without reserved symbols.

    If `translated` contains a target (a placeholder also with other white space or case), that is its place. Otherwise
    it replaces the words that `alignment`, from `text` to `translated`, links to the source's part; unknown characters
    only words without other links. Otherwise it is inserted at an estimated position, and flagged. Repeated
    placeholders are flagged and removed.
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
    guesses = PositionGuesses(text, translated, alignment, places.values())
    for index, span in enumerate(spans):
        is_exclusive = span.flag is Flag.UNKNOWN
        if index not in places and (aligned := guesses.aligned(span.start, span.end, is_exclusive=is_exclusive)):
            places[index] = aligned
    for index, span in enumerate(spans):
        if index not in places:
            places[index] = guesses.place(span.start, span.end)
            flags.add(span.flag)
    if keep_order(spans, places):
        flags.add(Flag.PLACEHOLDER)
    source = Offsets([Edit(span.start, span.end, span.start, span.end) for span in spans])
    return write_targets(text, translated, tuple(spans), places, flags, (), source)


def _plain(target: str, flag: Flag) -> str:
    """Return a key that a target shares with the forms of it that are accepted."""
    return "".join(target.split()).casefold() if flag is Flag.PLACEHOLDER else target


@functools.lru_cache(maxsize=16)  # a model's symbols never change
def _any_symbol(symbols: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(alternation(symbols))


def _targets(spans: Sequence[Protected]) -> str:
    """Return a regular expression for the targets, longest first: placeholders in any case and with any white space."""
    placeholders = {"".join(span.target.split()) for span in spans if span.flag is Flag.PLACEHOLDER} - {""}
    longest_first = sorted(placeholders, key=len, reverse=True)
    loose = "|".join(r"\s*".join(map(re.escape, placeholder)) for placeholder in longest_first) or "(?!)"
    exact = (
        f"(?P<{flag.value}>{alternation(span.target for span in spans if span.flag is flag)})"
        for flag in (Flag.TERM, Flag.UNKNOWN, Flag.NUMBERS)
    )
    return f"(?P<{Flag.PLACEHOLDER.value}>(?i:{loose}))|{'|'.join(exact)}"


def keep_order(spans: Sequence[Protected], places: MutableMapping[int, Span]) -> bool:
    """Return whether placeholders are in another order than the source's, which changes what they mean.

    Arguments of printf's kind that moved are left there. Tags that ended before they began are put in the source's
    order.
    """
    if len(spans) < 2 or all(places[index] <= places[index + 1] for index in range(len(spans) - 1)):
        return False
    order = sorted(places, key=lambda index: (places[index], index))
    placeholders = [index for index in order if spans[index].flag is Flag.PLACEHOLDER]
    arguments = [index for index in placeholders if _ARGUMENT.search(spans[index].target)]
    tags = [index for index in placeholders if _TAG.search(spans[index].target)]
    is_broken = not _are_nested(spans, tags) and _are_nested(spans, sorted(tags))
    if is_broken:
        in_order = [places[index] for index in tags]
        places.update(zip(sorted(tags), in_order, strict=True))
    return is_broken or arguments != sorted(arguments)


def _are_nested(spans: Sequence[Protected], tags: Sequence[int]) -> bool:
    """Return whether each end tag ends the last one that is open; tags without an end don't count."""
    found = [each for index in tags for each in _TAG.finditer(spans[index].target) if not each[0].endswith("/>")]
    names = [(each[2] or f"{each[3]}{each[5]}", bool(each[1] or each[4])) for each in found]
    ended = {name for name, is_end in names if is_end}
    opened: list[str] = []
    for name, is_end in names:
        if not is_end and name in ended:
            opened.append(name)
        elif is_end and (not opened or opened.pop() != name):
            return False
    return True


class PositionGuesses:
    """Estimate the positions in a translation of targets that it lacks."""

    def __init__(self, text: str, translated: str, alignment: Sequence[AlignedSpan], taken: Iterable[Span]) -> None:
        self._text = text
        self._translated = translated
        self._alignment = sorted(alignment, key=lambda part: (part.source_start, part.source_end, part.target_start))
        self._taken = sorted(span for span in taken if span.start < span.end)

    def aligned(self, source_start: int, source_end: int, *, is_exclusive: bool = False) -> Span | None:
        """Return the longest free run of whole words aligned to a part; if it `is_exclusive`, to it alone."""
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
            if is_exclusive and any(
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
        signs = self._text[:source_start].strip()
        if not any(map(str.isalnum, signs)):
            return len(signs) if self._translated.startswith(signs) else 0
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
