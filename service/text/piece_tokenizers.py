"""Tokenizers that use SentencePiece to split texts and a separate vocabulary for the pieces' ids.

They behave as transformers 5's classes of the same names (`models/marian`, `models/m2m_100`, `tokenization_python`) by
default. For untrusted texts this means:

- A special token spelled in a text, such as "</s>" or "__fr__", gets that token's id, in its place. It can't end the
  sentence there or choose the language: a source has a length and is never searched for its end, and the tokens that
  choose languages come from the manifest and precede the source and the translation.
- Marian's ">>fr<<" is a language token only where transformers would find one in the whole input. The prefix from the
  manifest is the beginning of that input, so a text that begins with another one does not replace it. Right after a
  special token it is a language token, as in transformers; the prefix still comes first.

Marian's punctuation normalizer (sacremoses) is set up but never applied by transformers 5, so it is omitted here.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from service.bundle.errors import BundleError, one_line
from service.text.sentencepiece_model import REPLACEMENT, SentencePieceModel
from service.text.token_spans import TokenSpan, spread, stripped
from service.text.vocabulary import marian_language, parse_vocabulary


class M2M100Tokenizer:
    """M2M100's tokenizer: a SentencePiece model, the ids of its pieces, and special tokens, whose ids may follow."""

    def __init__(self, file: Path, vocabulary_file: Path, special_tokens: Mapping[str, int], unk_id: int) -> None:
        """Load `file`, the SentencePiece model, and `vocabulary_file`, a `vocab.json`.

        `special_tokens` are recognized in texts and omitted from translations; `unk_id` is for pieces without an id.

        Raises:
            BundleError: a file can't be read or is damaged.
        """
        self._model = SentencePieceModel(file)
        self._ids = _read_vocabulary(vocabulary_file)
        self._special = SpecialTokens(special_tokens)
        self._unk_id = unk_id
        skipped = set(special_tokens.values())
        self._pieces = {token_id: piece for piece, token_id in self._ids.items() if token_id not in skipped}

    @property
    def unk_id(self) -> int:
        """See `Tokenizer.unk_id`."""
        return self._unk_id

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer.encode`."""
        (start, *others), special_ids = self._special.split(text)
        token_ids = self._encode_start(start)
        for special_id, following in zip(special_ids, others, strict=True):
            token_ids.append(special_id)
            token_ids += self._encode_part(following)
        return token_ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`."""
        return self._decode(self._pieces_of(token_ids)).strip()

    def source_spans(self, text: str) -> list[TokenSpan]:
        """See `Tokenizer.source_spans`."""
        spans, start = [], 0
        for special in (*self._special.spans(text), None):
            end = len(text) if special is None else special[0]
            within = self._start_spans(text[:end]) if start == 0 else self._part_spans(text[start:end])
            spans += [(start + first, start + last) for first, last in within]
            if special is not None:
                spans.append(special)
                start = special[1]
        return spans

    def target_spans(self, token_ids: Sequence[int]) -> list[TokenSpan]:
        """See `Tokenizer.target_spans`."""
        pieces = self._pieces_of(token_ids)
        spans = stripped(self._model.spans_of_pieces(pieces), self._decode(pieces))
        return spread(spans, [index in self._pieces for index in token_ids])

    def _pieces_of(self, token_ids: Sequence[int]) -> list[str]:
        pieces = self._pieces
        return [pieces[index] for index in token_ids if index in pieces]

    def _decode(self, pieces: list[str]) -> str:
        return self._model.text_of_pieces(pieces)

    def _start_spans(self, text: str) -> list[TokenSpan]:
        """Return the spans of the tokens from `_encode_start`."""
        return self._part_spans(text)

    def _part_spans(self, text: str) -> list[TokenSpan]:
        """Return the spans of the tokens from `_encode_part`."""
        return self._model.spans(text)

    def encode_target(self, text: str) -> list[int]:
        """See `Tokenizer.encode_target`."""
        ids = self._ids
        known = [ids[piece] for piece in self._model.pieces(text) if piece in ids]
        return [token_id for token_id in known if token_id in self._pieces]

    def decode_settled(self, token_ids: Sequence[int]) -> str:
        """See `Tokenizer.decode_settled`; the bytes of an incomplete character are at the end."""
        return self.decode(token_ids).rstrip(REPLACEMENT).rstrip()

    def _encode_start(self, text: str) -> list[int]:
        """Encode the text before the first special token."""
        return self._encode_part(text)

    def _encode_part(self, text: str) -> list[int]:
        """Encode a text between special tokens, which SentencePiece sees in isolation."""
        ids, unk_id = self._ids, self._unk_id
        return [ids.get(piece, unk_id) for piece in self._model.pieces(text)]


class MarianTokenizer(M2M100Tokenizer):
    """Marian's tokenizer (OPUS-MT): like M2M100's, and a part of a text may begin with a language token."""

    def __init__(self, file: Path, vocabulary_file: Path, special_tokens: Mapping[str, int], unk_id: int) -> None:
        """See `M2M100Tokenizer`."""
        super().__init__(file, vocabulary_file, special_tokens, unk_id)
        self._wants_prefix = any(map(marian_language, self._ids))

    def _decode(self, pieces: list[str]) -> str:
        # Pieces may be from the other side's model; SentencePiece then leaves their spaces marked.
        return super()._decode(pieces).replace("▁", " ")

    def _encode_start(self, text: str) -> list[int]:
        # The manifest's prefix precludes another one: transformers looks once, at the beginning of the input.
        return super()._encode_part(text) if self._wants_prefix else self._encode_part(text)

    def _encode_part(self, text: str) -> list[int]:
        end = _language_token_end(text)
        if not end:
            return super()._encode_part(text)
        return [self._ids.get(text[:end], self._unk_id), *super()._encode_part(text[end:])]

    def _start_spans(self, text: str) -> list[TokenSpan]:
        return super()._part_spans(text) if self._wants_prefix else self._part_spans(text)

    def _part_spans(self, text: str) -> list[TokenSpan]:
        end = _language_token_end(text)
        if not end:
            return super()._part_spans(text)
        return [(0, end), *((end + first, end + last) for first, last in super()._part_spans(text[end:]))]


def _language_token_end(text: str) -> int:
    """Return where the language token at the beginning of a text ends; 0 if there is none."""
    return text.find("<<") + 2 if text.startswith(">>") and "<<" in text else 0


def _read_vocabulary(file: Path) -> dict[str, int]:
    try:
        return parse_vocabulary(file.read_bytes())
    except (OSError, ValueError) as error:
        raise BundleError(f"{file} can't be read as a vocabulary: {one_line(error)}.") from error


class SpecialTokens:
    """Finds special tokens in texts: the leftmost first, and of those at the same position the longest.

    transformers does the same, unless a special token is within another one.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        """Take `ids`, which maps each token's text, which is not empty, to its id; there is at least one."""
        self._ids = dict(ids)
        self._pattern = re.compile(f"({_any_of(ids)})")

    def split(self, text: str) -> tuple[list[str], list[int]]:
        """Split a text at its n special tokens: return the n + 1 texts around them, which may be empty, and the tokens'
        ids.
        """
        parts = self._pattern.split(text)
        return parts[::2], [self._ids[token] for token in parts[1::2]]

    def spans(self, text: str) -> list[TokenSpan]:
        """Return the positions of the special tokens that `split` finds."""
        return [found.span() for found in self._pattern.finditer(text)]


def _any_of(words: Iterable[str]) -> str:
    """Return a regular expression for the longest of the words, in which common prefixes are shared.

    An alternative for each of a hundred languages' tokens takes ten times as long on a text of underscores.
    """
    alternatives = []
    for first, group in itertools.groupby(sorted(words, reverse=True), key=lambda word: word[:1]):
        rests = [word[1:] for word in group]
        alternatives.append(re.escape(first) + (_any_of(rests) if len(rests) > 1 else re.escape(rests[0])))
    return f"(?:{'|'.join(alternatives)})"
