"""Tokenizers that cut texts with SentencePiece and number the pieces by a vocabulary of their own.

They do as transformers 5's classes of the same names (`models/marian`, `models/m2m_100`, `tokenization_python`) do by
default. For texts from outside this means:

- A text that spells a special token, such as "</s>" or "__fr__", gets that token's id, in its place. It can't end the
  sentence there or choose the language: a source is counted, never searched for its end, and the tokens that choose
  languages come from the manifest and stand before the source and before the translation.
- Marian's ">>fr<<" is a language token only where transformers would find one in the whole input. The prefix that the
  manifest asks for is the beginning of that input, so a text that begins with another one does not replace it. Right
  after a special token it is one, there as here; the prefix still comes first.

Marian's punctuation normalizer (sacremoses) is set up by transformers 5 and never applied: here is none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from service.bundle.manifest import BundleError, one_line
from service.text.sentencepiece_model import REPLACEMENT, SentencePieceModel
from service.text.special_tokens import SpecialTokens
from service.text.token_spans import TokenSpan, spread, stripped
from service.text.vocabulary import marian_language, parse_vocabulary


class M2M100Tokenizer:
    """M2M100's: a SentencePiece model, the ids of its pieces, and special tokens whose ids may follow those."""

    def __init__(self, file: Path, vocabulary_file: Path, special_tokens: Mapping[str, int], unk_id: int) -> None:
        """Load `file`, the SentencePiece model, and `vocabulary_file`, a `vocab.json`.

        `special_tokens` are found in texts and left out of translations; `unk_id` is for pieces without an id.

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
        """As `Tokenizer.unk_id`."""
        return self._unk_id

    def encode(self, text: str) -> list[int]:
        """As `Tokenizer.encode`."""
        (start, *others), special_ids = self._special.split(text)
        token_ids = self._encode_start(start)
        for special_id, following in zip(special_ids, others, strict=True):
            token_ids.append(special_id)
            token_ids += self._encode_part(following)
        return token_ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """As `Tokenizer.decode`."""
        return self._decode(self._pieces_of(token_ids)).strip()

    def source_spans(self, text: str) -> list[TokenSpan]:
        """As `Tokenizer.source_spans`."""
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
        """As `Tokenizer.target_spans`."""
        pieces = self._pieces_of(token_ids)
        spans = stripped(self._model.spans_of_pieces(pieces), self._decode(pieces))
        return spread(spans, [index in self._pieces for index in token_ids])

    def _pieces_of(self, token_ids: Sequence[int]) -> list[str]:
        pieces = self._pieces
        return [pieces[index] for index in token_ids if index in pieces]

    def _decode(self, pieces: list[str]) -> str:
        return self._model.text_of_pieces(pieces)

    def _start_spans(self, text: str) -> list[TokenSpan]:
        """Spans of what `_encode_start` gives."""
        return self._part_spans(text)

    def _part_spans(self, text: str) -> list[TokenSpan]:
        """Spans of what `_encode_part` gives."""
        return self._model.spans(text)

    def encode_target(self, text: str) -> list[int]:
        """As `Tokenizer.encode_target`."""
        ids = self._ids
        known = [ids[piece] for piece in self._model.pieces(text) if piece in ids]
        return [token_id for token_id in known if token_id in self._pieces]

    def decode_settled(self, token_ids: Sequence[int]) -> str:
        """As `Tokenizer.decode_settled`; the bytes of a character that is not complete yet stand at the end."""
        return self.decode(token_ids).rstrip(REPLACEMENT).rstrip()

    def _encode_start(self, text: str) -> list[int]:
        """Ids of what is before the first special token."""
        return self._encode_part(text)

    def _encode_part(self, text: str) -> list[int]:
        """Ids of a text between special tokens, which SentencePiece sees by itself."""
        ids, unk_id = self._ids, self._unk_id
        return [ids.get(piece, unk_id) for piece in self._model.pieces(text)]


class MarianTokenizer(M2M100Tokenizer):
    """Marian's (OPUS-MT): as M2M100's, and a part of a text may begin with a language token."""

    def __init__(self, file: Path, vocabulary_file: Path, special_tokens: Mapping[str, int], unk_id: int) -> None:
        """As `M2M100Tokenizer`."""
        super().__init__(file, vocabulary_file, special_tokens, unk_id)
        self._wants_prefix = any(map(marian_language, self._ids))

    def _decode(self, pieces: list[str]) -> str:
        # Pieces may be the other side's, whose spaces SentencePiece then leaves marked.
        return super()._decode(pieces).replace("▁", " ")

    def _encode_start(self, text: str) -> list[int]:
        # After the manifest's prefix no other is looked for; transformers looks once, at the input's beginning.
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
    """Where the language token ends that a text begins with; 0 if there is none."""
    return text.find("<<") + 2 if text.startswith(">>") and "<<" in text else 0


def _read_vocabulary(file: Path) -> dict[str, int]:
    try:
        return parse_vocabulary(file.read_bytes())
    except (OSError, ValueError) as error:
        raise BundleError(f"{file} can't be read as a vocabulary: {one_line(error)}.") from error
