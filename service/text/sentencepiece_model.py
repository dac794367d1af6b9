"""SentencePiece models. The only module that imports sentencepiece."""

from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from service.bundle.errors import BundleError, one_line
from service.text.spans import TokenSpan, consecutive, spread

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class SentencePieceModel:
    """Converts texts to pieces and back; encoding and decoding release the GIL."""

    def __init__(self, file: Path) -> None:
        """Load a `.model` or `.spm` file."""
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
    """A SentencePiece model whose ids are the Transformer's.

    No text is encoded to a special token: SentencePiece never matches control pieces in texts.
    """

    def __init__(self, file: Path) -> None:
        """Load a model file."""
        self._model = SentencePieceModel(file)
        self.unk_id = self._model.unk_id  # which a model with byte fallback never produces

    def encode(self, text: str) -> list[int]:
        return self._model.ids(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        size = self._model.size
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
