"""Characters unknown to a model, which must not be lost in translation."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from service.domain.checkpoint import paced
from service.text.long_segments import is_one_character
from service.text.spans import Span
from service.text.tokenizers import Tokenizer
from service.text.words import is_word_boundary

# Typographic marks and their ASCII equivalents, which every vocabulary has.
_PLAIN = {
    **dict.fromkeys("’‘‛ʼ′´", "'"),
    **dict.fromkeys("“”„‟«»″", '"'),
    **dict.fromkeys("—―–‒−", "-"),
    **dict.fromkeys("‐‑", "-"),
}
_AS_SPACE = "\ufffd\u2581"  # visible, but SentencePiece's normalization rules treat them as spaces
_STRANGE = "\U00012000"  # cuneiform: a tokenizer that encodes it to nothing drops text without a piece
_IN_NUMBERS = frozenset(".,:")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})
_WINDOW = 2000  # characters processed at once: texts too long for a model may be very long


class UnknownCharacters:
    """Finds text that a tokenizer encodes to its unknown id, or drops: built once for each model. Thread-safe.

    Invisible characters, such as white space, controls, zero-width spaces and soft hyphens, are never found, nor are
    those that a tokenizer knows in another form, such as full-width letters.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._is_ready = False
        self._drops = False
        self._dropped = ""
        self._plain: dict[int, str] = {}

    def are_in(self, text: str, token_ids: Sequence[int]) -> bool:
        """Return whether a text with these ids may contain any: a quick check; `find` decides."""
        if self._tokenizer.unk_id in token_ids:
            return True
        if not self._is_ready:
            self._prepare()
        return self._drops or (not text.isascii() and any(character in text for character in self._dropped))

    def plain(self, text: str) -> str:
        """Replace unknown quotation marks, apostrophes and dashes by their ASCII form where that is known.

        The length stays the same. If such a mark were protected by itself, it would break the word: "don't" into three.
        """
        if not self._is_ready:
            self._prepare()
        return text.translate(self._plain)

    def find(self, text: str) -> list[Span]:
        """Find the runs of unknown characters: sorted, disjoint, not empty; in linear time.

        They are whole user-perceived characters, words, and numbers with a sign: "café", "£5.20". White space does not
        separate them.
        """
        runs: list[Span] = []
        for found in _joined(text, self._found(text)):
            done = runs[-1].end if runs else 0
            if found.end > done:
                start, end = _visible(text, *_whole(text, max(found.start, done), found.end, done))
                if start < end:
                    runs.append(Span(start, end))
        return _joined(text, runs)

    def _found(self, text: str) -> Iterator[Span]:
        """Yield the positions of unknown characters, from left to right; adjacent ones may be in several parts."""
        for offset, window in paced(_windows(text), every=1):
            token_ids = self._tokenizer.encode(window)
            if self.are_in(window, token_ids):
                for start, end in self._found_within(window, token_ids):
                    yield Span(offset + start, offset + end)

    def _found_within(self, text: str, token_ids: Sequence[int]) -> Iterable[tuple[int, int]]:
        unk_id = self._tokenizer.unk_id
        spans = self._tokenizer.source_spans(text)
        # If a character is several pieces, all but the last have an empty span at its beginning.
        found = [
            (start, max(end, start + 1))
            for (start, end), token in zip(spans, token_ids, strict=True)
            if token == unk_id
        ]
        if self._drops:
            ends = [0, *(end for _, end in spans)]
            starts = [*(start for start, _ in spans), len(text)]
            found += [(end, start) for end, start in zip(ends, starts, strict=True) if end < start]
        found += [(at, at + 1) for at, character in enumerate(text) if character in self._dropped]
        return sorted((start, min(end, len(text))) for start, end in found)

    def _prepare(self) -> None:
        """Determine the tokenizer's behaviour; idempotent, so several threads may do this at once."""
        encode, unk_id = self._tokenizer.encode, self._tokenizer.unk_id
        self._drops = not encode(_STRANGE)
        self._dropped = "".join(character for character in _AS_SPACE if encode(character) in ([], encode(" ")))
        self._plain = {
            ord(mark): plain for mark, plain in _PLAIN.items() if unk_id in encode(mark) and unk_id not in encode(plain)
        }
        self._is_ready = True


def _windows(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while len(text) - start > _WINDOW:
        latest = start + _WINDOW
        end = next((at for at in range(latest, start, -1) if text[at].isspace()), latest)
        yield start, text[start:end]
        start = end
    yield start, text[start:]


def _joined(text: str, spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        if joined and (span.start <= joined[-1].end or all(map(_is_invisible, text[joined[-1].end : span.start]))):
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def _whole(text: str, start: int, end: int, done: int) -> tuple[int, int]:
    """Extend text[start:end] to everything that must stay together with it, but not to before `done`."""
    if (start == done or text[start - 1].isspace()) and (end == len(text) or text[end].isspace()):
        return start, end
    while start > done and is_one_character(text[start - 1], text[start]):
        start -= 1
    while end < len(text) and is_one_character(text[end - 1], text[end]):
        end += 1
    while start > done and not is_word_boundary(text, start):
        start -= 1
    while not is_word_boundary(text, end):
        end += 1
    before = _number_start(text, start, done) if _is_sign(text[start]) else start
    after = _number_end(text, end) if _is_sign(text[end - 1]) else end
    return before if is_word_boundary(text, before) else start, after if is_word_boundary(text, after) else end


def _number_start(text: str, end: int, done: int) -> int:
    start = end
    while start > done and text[start - 1].isdecimal():
        start -= 1
        if start - 1 > done and text[start - 1] in _IN_NUMBERS and text[start - 2].isdecimal():
            start -= 1
    return start


def _number_end(text: str, start: int) -> int:
    end = start
    while text[end : end + 1].isdecimal():
        end += 1
        if text[end : end + 1] in _IN_NUMBERS and text[end + 1 : end + 2].isdecimal():
            end += 1
    return end


def _visible(text: str, start: int, end: int) -> tuple[int, int]:
    """Return text[start:end] without invisible characters at its ends."""
    while start < end and _is_invisible(text[start]):
        start += 1
    while start < end and _is_invisible(text[end - 1]):
        end -= 1
    return start, end


def _is_invisible(character: str) -> bool:
    is_tag = "\U000e0020" <= character <= "\U000e007f"  # of flags such as Scotland's
    return unicodedata.category(character) in _INVISIBLE and not is_tag


def _is_sign(character: str) -> bool:
    return unicodedata.category(character)[0] == "S"
