"""Tokenizers that use SentencePiece to split texts and a separate vocabulary for the pieces' ids.

They behave as transformers 5's classes of the same names (`models/marian`, `models/m2m_100`, `tokenization_python`) do
with `split_special_tokens`: what is spelled like a special token in a caller's text, such as "</s>", "__fr__" or
">>fr<<", is text. Only the prefixes of the manifest choose languages.

Marian's punctuation normalizer (sacremoses) is set up but never applied by transformers 5, so it is omitted here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from service.bundle.errors import BundleError, one_line
from service.text.sentencepiece_model import REPLACEMENT, SentencePieceModel
from service.text.spans import TokenSpan, spread, stripped
from service.text.vocabulary import parse_vocabulary


class M2M100Tokenizer:
    """M2M100's tokenizer: a SentencePiece model, the ids of its pieces, and special tokens, whose ids may follow."""

    def __init__(self, file: Path, vocabulary_file: Path, special_tokens: Mapping[str, int], unk_id: int) -> None:
        """Load `file`, the SentencePiece model, and `vocabulary_file`, a `vocab.json`.

        `special_tokens` are omitted from translations; `unk_id` is for pieces without an id.
        """
        self._model = SentencePieceModel(file)
        self._ids = read_vocabulary(vocabulary_file)
        self.unk_id = unk_id
        skipped = set(special_tokens.values())
        self._pieces = {token_id: piece for piece, token_id in self._ids.items() if token_id not in skipped}
        for token in special_tokens:  # a run of letters that the model lacks may spell one, and is a piece as it is
            if not self._model.can_match(token):
                self._ids.pop(token, None)

    def encode(self, text: str) -> list[int]:
        ids, unk_id = self._ids, self.unk_id
        return [ids.get(piece, unk_id) for piece in self._model.pieces(text)]

    def decode(self, token_ids: Sequence[int]) -> str:
        return self._decode(self._pieces_of(token_ids)).strip()

    def source_spans(self, text: str) -> list[TokenSpan]:
        return self._model.spans(text)

    def target_spans(self, token_ids: Sequence[int]) -> list[TokenSpan]:
        pieces = self._pieces_of(token_ids)
        spans = stripped(self._model.decoded_spans(pieces), self._decode(pieces))
        return spread(spans, [index in self._pieces for index in token_ids])

    def _pieces_of(self, token_ids: Sequence[int]) -> list[str]:
        pieces = self._pieces
        return [pieces[index] for index in token_ids if index in pieces]

    def _decode(self, pieces: list[str]) -> str:
        return self._model.text(pieces)

    def encode_target(self, text: str) -> list[int]:
        ids = self._ids
        known = [ids[piece] for piece in self._model.pieces(text) if piece in ids]
        return [token_id for token_id in known if token_id in self._pieces]

    def decode_settled(self, token_ids: Sequence[int]) -> str:
        # The bytes of an incomplete character are at the end.
        return self.decode(token_ids).rstrip(REPLACEMENT).rstrip()


class MarianTokenizer(M2M100Tokenizer):
    """Marian's tokenizer (OPUS-MT), which may have a vocabulary for each side."""

    def _decode(self, pieces: list[str]) -> str:
        # Pieces may be from the other side's model; SentencePiece then leaves their spaces marked.
        return super()._decode(pieces).replace("▁", " ")


def read_vocabulary(file: Path) -> dict[str, int]:
    """Return the pieces and ids of a `vocab.json`."""
    try:
        return parse_vocabulary(file.read_bytes())
    except (OSError, ValueError) as error:
        raise BundleError(f"{file} can't be read as a vocabulary: {one_line(error)}.") from error
