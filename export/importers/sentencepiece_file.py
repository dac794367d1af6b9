"""What a SentencePiece file says about its vocabulary, so that a mismatch with the weights is found at import."""

from dataclasses import dataclass
from pathlib import Path

import sentencepiece


@dataclass(frozen=True, slots=True)
class SentencePieceFacts:
    """Size, special ids (-1: the model has none) and the user-defined symbols of Unicode's private use area."""

    size: int
    bos_id: int
    pad_id: int
    eos_id: int
    unk_id: int
    reserved_symbols: tuple[str, ...]


def read_facts(path: Path) -> SentencePieceFacts:
    """Load the file and look.

    Raises:
        ValueError: it is no SentencePiece model.
    """
    try:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (OSError, RuntimeError) as error:
        raise ValueError(f"it is no SentencePiece model ({error})") from error
    pieces = [processor.id_to_piece(index) for index in range(processor.get_piece_size())]
    return SentencePieceFacts(
        size=len(pieces),
        bos_id=processor.bos_id(),
        pad_id=processor.pad_id(),
        eos_id=processor.eos_id(),
        unk_id=processor.unk_id(),
        reserved_symbols=tuple(piece for piece in pieces if len(piece) == 1 and "\ue000" <= piece <= "\uf8ff"),
    )
