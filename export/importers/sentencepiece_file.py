"""Inspects the vocabulary of a SentencePiece file, so that a mismatch with the weights is found at import."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import sentencepiece

from export.importers import stored_file

# Field numbers, from sentencepiece_model.proto. Its generated module needs a newer protobuf than gRPC's packages.
_NORMALIZER_SPEC = 3  # of ModelProto; the fields after it are optional
_PRECOMPILED_CHARSMAP = 2  # of NormalizerSpec


@dataclass(frozen=True, slots=True)
class SentencePieceFacts:
    """Size, special ids (-1: the model has none) and the user-defined symbols from Unicode's private use area."""

    size: int
    bos_id: int
    pad_id: int
    eos_id: int
    unk_id: int
    reserved_symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SentencePieces:
    """All pieces in the order of their ids, their scores, and the compiled map of replaced characters, maybe empty.

    `special` pieces are in no text: those of control, of unknown text, and unused ones.
    """

    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    special: frozenset[str]
    character_map: bytes


def read_facts(path: Path) -> SentencePieceFacts:
    return facts_of(stored_file.read(path))


def facts_of(proto: bytes) -> SentencePieceFacts:
    processor, _ = _load(proto)
    pieces = _pieces(processor)
    return SentencePieceFacts(
        size=len(pieces),
        bos_id=processor.bos_id(),
        pad_id=processor.pad_id(),
        eos_id=processor.eos_id(),
        unk_id=processor.unk_id(),
        reserved_symbols=tuple(piece for piece in pieces if len(piece) == 1 and "\ue000" <= piece <= "\uf8ff"),
    )


def pieces_of(proto: bytes) -> tuple[str, ...]:
    return _pieces(_load(proto)[0])


def read_pieces(path: Path) -> SentencePieces:
    processor, normalizer = _load(stored_file.read(path))
    fields, pieces = dict(_fields(normalizer)), _pieces(processor)
    kinds = (processor.is_control, processor.is_unknown, processor.is_unused)
    return SentencePieces(
        pieces,
        tuple(processor.get_score(index) for index in range(len(pieces))),
        frozenset(piece for index, piece in enumerate(pieces) if any(is_kind(index) for is_kind in kinds)),
        fields.get(_PRECOMPILED_CHARSMAP, b""),
    )


def _pieces(processor: sentencepiece.SentencePieceProcessor) -> tuple[str, ...]:
    return tuple(processor.id_to_piece(index) for index in range(processor.get_piece_size()))


def _load(proto: bytes) -> tuple[sentencepiece.SentencePieceProcessor, bytes]:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(proto)
    except RuntimeError as error:
        raise ValueError(f"it is not a SentencePiece model ({error})") from error
    fields = dict(_fields(proto))  # truncated between two of its pieces, it is still a valid model
    if _NORMALIZER_SPEC not in fields:
        raise ValueError("it is cut short: no normalizer follows its pieces")
    return processor, fields[_NORMALIZER_SPEC]


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield numbers and contents of a protobuf message's fields, except those that hold plain numbers."""
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
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
