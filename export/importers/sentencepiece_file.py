"""What a SentencePiece file says about its vocabulary, so that a mismatch with the weights is found at import."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import sentencepiece

# Numbers of fields, from sentencepiece_model.proto. Its generated module wants a newer protobuf than gRPC's packages.
_NORMALIZER_SPEC = 3  # of ModelProto; what follows it is optional
_PRECOMPILED_CHARSMAP = 2  # of NormalizerSpec


@dataclass(frozen=True, slots=True)
class SentencePieceFacts:
    """Size, special ids (-1: the model has none) and the user-defined symbols of Unicode's private use area."""

    size: int
    bos_id: int
    pad_id: int
    eos_id: int
    unk_id: int
    reserved_symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SentencePieces:
    """All pieces in the order of their ids, and the compiled map of characters that are replaced, empty if none are."""

    pieces: tuple[str, ...]
    character_map: bytes


def read_facts(path: Path) -> SentencePieceFacts:
    """Load the file and look.

    Raises:
        ValueError: it is no SentencePiece model, or cut short.
    """
    processor, _ = _load(path)
    pieces = _pieces(processor)
    return SentencePieceFacts(
        size=len(pieces),
        bos_id=processor.bos_id(),
        pad_id=processor.pad_id(),
        eos_id=processor.eos_id(),
        unk_id=processor.unk_id(),
        reserved_symbols=tuple(piece for piece in pieces if len(piece) == 1 and "\ue000" <= piece <= "\uf8ff"),
    )


def read_pieces(path: Path) -> SentencePieces:
    """Load the file and take it apart.

    Raises:
        ValueError: as for `read_facts`.
    """
    processor, normalizer = _load(path)
    fields = dict(_fields(normalizer))
    return SentencePieces(_pieces(processor), fields.get(_PRECOMPILED_CHARSMAP, b""))


def _pieces(processor: sentencepiece.SentencePieceProcessor) -> tuple[str, ...]:
    return tuple(processor.id_to_piece(index) for index in range(processor.get_piece_size()))


def _load(path: Path) -> tuple[sentencepiece.SentencePieceProcessor, bytes]:
    """The model and its NormalizerSpec."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        proto = path.read_bytes()
        processor.LoadFromSerializedProto(proto)
    except FileNotFoundError:
        raise ValueError("it is missing") from None
    except (OSError, RuntimeError) as error:
        raise ValueError(f"it is no SentencePiece model ({error})") from error
    fields = dict(_fields(proto))  # cut between two of its pieces, it is still a model
    if _NORMALIZER_SPEC not in fields:
        raise ValueError("it is cut short: no normalizer follows its pieces")
    return processor, fields[_NORMALIZER_SPEC]


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers and contents of a protobuf message's fields; those that hold plain numbers are left out."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        if key & 7 == 0:
            _, position = _varint(message, position)
        else:
            length, position = _varint(message, position)
            yield key >> 3, message[position : position + length]
            position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A number in protobuf's variable-length form, and where it ends."""
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
