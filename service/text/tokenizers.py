"""Tokenizers: text to piece ids and back. The only importer of sentencepiece."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import sentencepiece

from service.bundle.manifest import BundleError, TokenizerSpec


class Tokenizer(Protocol):
    """Turns text into ids of pieces and back. Safe to call from several threads at once."""

    def encode(self, text: str) -> list[int]:
        """Ids of the text's pieces, without prefix and end-of-sentence id; empty if nothing visible is in it."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of pieces; special ids have none."""
        ...


class SentencePieceTokenizer:
    """A SentencePiece model, or two; encoding and decoding run without the interpreter's lock."""

    def __init__(self, file: Path, target_file: Path | None = None) -> None:
        """Load a `.model` file, and another one for what the model writes.

        Raises:
            BundleError: one can't be read, or is no SentencePiece model.
        """
        self._source = _load_processor(file)
        self._target = self._source if target_file is None else _load_processor(target_file)

    @property
    def vocabulary_size(self) -> int:
        """Number of pieces that the model writes; ids are below it."""
        return int(self._target.get_piece_size())

    def encode(self, text: str) -> list[int]:
        """As `Tokenizer.encode`."""
        return list(self._source.encode(text))

    def decode(self, token_ids: Sequence[int]) -> str:
        """As `Tokenizer.decode`; ids beyond the vocabulary, which pad the output layer, are skipped."""
        size = self.vocabulary_size
        return str(self._target.decode([token_id for token_id in token_ids if token_id < size]))


def _load_processor(file: Path) -> sentencepiece.SentencePieceProcessor:
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=file.read_bytes())
    except (OSError, RuntimeError) as error:
        raise BundleError(f"{file} can't be read as a SentencePiece model: {error}.") from error


def load_tokenizer(spec: TokenizerSpec, directory: Path) -> Tokenizer:
    """Build the tokenizer that a bundle in `directory` asks for.

    Raises:
        BundleError: its kind is unknown or its file is unusable.
    """
    if spec.kind != "sentencepiece":
        raise BundleError(f"{directory}: tokenizer.kind is {spec.kind!r}; this service knows 'sentencepiece'.")
    return SentencePieceTokenizer(directory / spec.file, directory / spec.target_file if spec.target_file else None)
