"""What a SentencePiece file says about its vocabulary, so that a mismatch with the weights is found at import."""

from dataclasses import dataclass
from pathlib import Path

import sentencepiece

_NORMALIZER_SPEC = 3  # field of ModelProto (sentencepiece_model.proto); what follows it is optional


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
        ValueError: it is no SentencePiece model, or cut short.
    """
    processor = sentencepiece.SentencePieceProcessor()
    try:
        proto = path.read_bytes()
        processor.LoadFromSerializedProto(proto)
    except FileNotFoundError:
        raise ValueError("it is missing") from None
    except (OSError, RuntimeError) as error:
        raise ValueError(f"it is no SentencePiece model ({error})") from error
    if _NORMALIZER_SPEC not in _fields(proto):
        raise ValueError("it is cut short: no normalizer follows its pieces")
    pieces = [processor.id_to_piece(index) for index in range(processor.get_piece_size())]
    return SentencePieceFacts(
        size=len(pieces),
        bos_id=processor.bos_id(),
        pad_id=processor.pad_id(),
        eos_id=processor.eos_id(),
        unk_id=processor.unk_id(),
        reserved_symbols=tuple(piece for piece in pieces if len(piece) == 1 and "\ue000" <= piece <= "\uf8ff"),
    )


def _fields(proto: bytes) -> set[int]:
    """Numbers of a ModelProto's fields, all of which are messages: cut between two of them it is still well-formed."""
    numbers, position = set(), 0
    while position < len(proto):
        key, position = _varint(proto, position)
        length, position = _varint(proto, position)
        numbers.add(key >> 3)
        position += length
    return numbers


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A number in protobuf's variable-length form, and where it ends."""
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
