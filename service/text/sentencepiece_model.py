"""SentencePiece models, and the tokenizers that use them. The only module that imports sentencepiece.

With a separate vocabulary they behave as transformers 5's classes of the same names (`models/marian`, `models/m2m_100`,
`tokenization_python`) with `split_special_tokens`: what is spelled like a special token in a caller's text, such as
"</s>", "__fr__" or ">>fr<<", is text. Only the manifest's prefixes choose languages. Marian's punctuation normalizer
(sacremoses) is omitted: transformers 5 never applies it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import sentencepiece

from service.bundle.errors import BundleError, one_line
from service.text.spans import TokenSpan, consecutive, spread, stripped
from service.text.vocabulary import parse_vocabulary

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class SentencePieceModel:
    """Converts texts to pieces and back; encoding and decoding release the GIL."""

    def __init__(self, file: Path) -> None:
        try:
            self._processor = sentencepiece.SentencePieceProcessor()
            self._processor.LoadFromSerializedProto(file.read_bytes())
        except (OSError, RuntimeError) as error:
            raise BundleError(f"{file} can't be read as a SentencePiece model: {one_line(error)}.") from error
        # Kept here: the library's properties take several calls each.
        self.size = int(self._processor.get_piece_size())  # number of pieces; the model's own ids are below it
        self.unk_id = int(self._processor.unk_id())  # of text without a piece

    def ids(self, text: str) -> list[int]:
        return list(self._processor.encode(text))

    def pieces(self, text: str) -> list[str]:
        """Return the text's pieces; text without a piece is returned as it is."""
        return list(self._processor.encode(text, out_type=str))

    def can_match(self, piece: str) -> bool:
        """Return whether a text may have this piece: not one that the model lacks, nor one of control."""
        index = self._processor.piece_to_id(piece)
        return bool(index != self.unk_id and not self._processor.is_control(index))

    def spans(self, text: str) -> list[TokenSpan]:
        return list(self._processor.encode(text, return_type="offset_mapping")["offsets"])

    def text(self, pieces: list[str] | list[int]) -> str:
        """Decode pieces, or the model's own ids; pieces that the model does not have are left unchanged."""
        return str(self._processor.decode(pieces))

    def decoded_spans(self, pieces: list[str] | list[int]) -> list[TokenSpan]:
        """Return the positions of pieces, or of the model's own ids, in their `text`."""
        decoded = self._processor.decode(pieces, return_type="proto")  # its own spans are in bytes
        return consecutive(len(piece.surface) for piece in decoded.pieces)


class SentencePieceTokenizer:
    """A SentencePiece model with the Transformer's ids; texts never match control pieces, so no special tokens."""

    def __init__(self, file: Path) -> None:
        self._model = SentencePieceModel(file)
        self.unk_id = self._model.unk_id  # which a model with byte fallback never produces

    def encode(self, text: str) -> list[int]:
        return self._model.ids(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        size = self._model.size
        if max(token_ids, default=0) < size:
            return self._model.text(list(token_ids))
        return self._model.text([token_id for token_id in token_ids if token_id < size])

    def encode_target(self, text: str) -> list[int]:
        return [token_id for token_id in self._model.ids(text) if token_id != self.unk_id]

    def decode_settled(self, token_ids: Sequence[int]) -> str:
        # The bytes of an incomplete character are at the end.
        return self.decode(token_ids).rstrip(REPLACEMENT)

    def source_spans(self, text: str) -> list[TokenSpan]:
        return self._model.spans(text)

    def target_spans(self, token_ids: Sequence[int]) -> list[TokenSpan]:
        size = self._model.size
        has_text = [token_id < size for token_id in token_ids]
        spans = self._model.decoded_spans([token_id for token_id in token_ids if token_id < size])
        return spread(spans, has_text)


class M2M100Tokenizer:
    """M2M100's tokenizer: a SentencePiece model, the ids of its pieces, and special tokens, whose ids may follow."""

    def __init__(self, file: Path, vocabulary_file: Path, special_tokens: Mapping[str, int], unk_id: int) -> None:
        """Load a SentencePiece model and a `vocab.json`; `unk_id` is for pieces without an id.

        `special_tokens` are omitted from translations.
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
    try:
        return parse_vocabulary(file.read_bytes())
    except (OSError, ValueError) as error:
        raise BundleError(f"{file} can't be read as a vocabulary: {one_line(error)}.") from error
