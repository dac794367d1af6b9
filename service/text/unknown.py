"""Characters that a model can't read: what its tokenizer has no piece for must not get lost between two languages."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from service.domain.checkpoint import paced
from service.text.long_segments import is_one_character
from service.text.spans import Span
from service.text.tokenizers import Tokenizer
from service.text.words import is_word_boundary

# Marks that a keyboard has for others, in the form that every vocabulary has.
_PLAIN = {
    **dict.fromkeys("’‘‛ʼ′´", "'"),
    **dict.fromkeys("“”„‟«»″", '"'),
    **dict.fromkeys("—―–‒−", "-"),
    **dict.fromkeys("‐‑", "-"),
}
_AS_SPACE = "\ufffd\u2581"  # visible, but to SentencePiece's rules of normalization they are spaces
_STRANGE = "\U00012000"  # cuneiform: who encodes it to nothing drops what there is no piece for
_IN_NUMBERS = frozenset(".,:")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})
_WINDOW = 2000  # characters that are looked at together: what is too long for a model may be long indeed


class UnknownCharacters:
    """Finds what a tokenizer gives its unknown id, or drops: made once for each model. Thread-safe.

    White space, control characters and others without a form of their own, such as zero-width spaces and soft hyphens,
    are no loss and never found. Nor is what a tokenizer knows by another form, such as full-width letters.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """`tokenizer` is the model's."""
        self._tokenizer = tokenizer
        self._is_ready = False
        self._drops = False
        self._dropped = ""
        self._plain: dict[int, str] = {}

    def are_in(self, text: str, token_ids: Sequence[int]) -> bool:
        """Whether there may be any in a text with these ids: a question of a microsecond, for `find` to answer."""
        if self._tokenizer.unk_id in token_ids:
            return True
        if not self._is_ready:
            self._prepare()
        return self._drops or (not text.isascii() and any(character in text for character in self._dropped))

    def plain(self, text: str) -> str:
        """The text with quotation marks, apostrophes and dashes that are unknown in the plain form that is not.

        It is as long as before. Such a mark carried over by itself would break the word: "don't" in three.
        """
        if not self._is_ready:
            self._prepare()
        return text.translate(self._plain)

    def find(self, text: str) -> list[Span]:
        """The runs of unknown characters: in order, apart, not empty; in linear time.

        A run is never a part of what a reader takes for one character. With an unknown letter its word is unknown, and
        with an unknown sign the number beside it: "café", "£5.20". Runs with nothing but white space between them are
        one.
        """
        runs: list[Span] = []
        for found in _joined(text, self._found(text)):
            done = runs[-1].end if runs else 0
            if found.end > done:
                start, end = _visible(text, *_whole(text, max(found.start, done), found.end, done))
                if start < end:
                    runs.append(Span(start, end))
        return list(_joined(text, runs))

    def _found(self, text: str) -> Iterator[Span]:
        """Where unknown characters are, from left to right; what touches may be in several parts."""
        for offset, window in paced(_windows(text), every=1):
            token_ids = self._tokenizer.encode(window)
            if self.are_in(window, token_ids):
                for start, end in self._found_within(window, token_ids):
                    yield Span(offset + start, offset + end)

    def _found_within(self, text: str, token_ids: Sequence[int]) -> Iterable[tuple[int, int]]:
        unk_id = self._tokenizer.unk_id
        spans = self._tokenizer.source_spans(text)
        # Of a character that is several pieces all but the last stand at its beginning, without a length.
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
        """Ask the tokenizer what it does; several threads may do this at once, to the same effect."""
        encode, unk_id = self._tokenizer.encode, self._tokenizer.unk_id
        self._drops = not encode(_STRANGE)
        self._dropped = "".join(character for character in _AS_SPACE if encode(character) in ([], encode(" ")))
        self._plain = {
            ord(mark): plain for mark, plain in _PLAIN.items() if unk_id in encode(mark) and unk_id not in encode(plain)
        }
        self._is_ready = True


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Parts of a text and where they begin, cut at white space where there is any."""
    start = 0
    while len(text) - start > _WINDOW:
        latest = start + _WINDOW
        end = next((at for at in range(latest, start, -1) if text[at].isspace()), latest)
        yield start, text[start:end]
        start = end
    yield start, text[start:]


def _joined(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in order, those as one that have nothing but white space between them."""
    last: Span | None = None
    for span in spans:
        if last is not None and (span.start <= last.end or text[last.end : span.start].isspace()):
            last = Span(last.start, max(last.end, span.end))
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def _whole(text: str, start: int, end: int, done: int) -> tuple[int, int]:
    """What must stay together with text[start:end], from `done` on."""
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
    """Where the number begins that is right before a place."""
    start = end
    while start > done and text[start - 1].isdecimal():
        start -= 1
        if start - 1 > done and text[start - 1] in _IN_NUMBERS and text[start - 2].isdecimal():
            start -= 1
    return start


def _number_end(text: str, start: int) -> int:
    """Where the number ends that is right after a place."""
    end = start
    while text[end : end + 1].isdecimal():
        end += 1
        if text[end : end + 1] in _IN_NUMBERS and text[end + 1 : end + 2].isdecimal():
            end += 1
    return end


def _visible(text: str, start: int, end: int) -> tuple[int, int]:
    """text[start:end] without what has no form of its own at its ends."""
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
