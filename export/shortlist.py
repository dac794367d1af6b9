"""Shortlists: for each source token, the target tokens that its translations consist of; read from Marian's files.

Allowed are some tokens always, those in the lists of a source's tokens and, with one vocabulary, these themselves:
`kernels/src/runtime/shortlists.cpp`.
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy import typing as npt

_MAGIC = 0xF11A48D5013417F5
_HEAD = struct.Struct("<QQQQQQ")  # magic, checksum, first, best, number of offsets, number of ids
_WORDS_FROM = 16  # bytes before the first number that the checksum counts
_GOLDEN, _MASK = 0x9E3779B9, 2**64 - 1
MULTIPLE = 8
MOST_LIST_BYTES = 2**28


@dataclass(frozen=True, slots=True, eq=False)
class Shortlist:
    """The list of source token t is `ids[offsets[t] : offsets[t + 1]]`, ascending."""

    always: npt.NDArray[np.int64]  # target ids
    offsets: npt.NDArray[np.int64]  # (V + 1,)
    ids: npt.NDArray[np.int32]

    def most(self, num_tokens: int, vocabulary_size: int) -> int:
        """Return the most ids that the list of a source of so many tokens can have."""
        longest = int(np.diff(self.offsets).max(initial=0)) + 1  # and the source's token itself
        return min(vocabulary_size, len(self.always) + num_tokens * longest + MULTIPLE)


def read_shortlist(data: bytes, source_size: int, target_size: int) -> Shortlist:
    """Read a file that Marian wrote (`lex.s2t.bin`), for vocabularies of these sizes."""
    if len(data) < _HEAD.size or _HEAD.unpack_from(data)[0] != _MAGIC:
        raise ValueError("it is not a Marian shortlist")
    _, checksum, first, _, num_offsets, num_ids = _HEAD.unpack_from(data)
    size = _HEAD.size + 8 * num_offsets + 4 * num_ids
    if size != len(data):
        raise ValueError(f"it has {len(data)} bytes, its head says {size}")
    if checksum != _checksum(data):
        raise ValueError("its checksum is not that of its content")
    offsets = np.frombuffer(data, "<u8", num_offsets, _HEAD.size)
    ids = np.frombuffer(data, "<u4", num_ids, _HEAD.size + 8 * num_offsets)
    if num_offsets != source_size + 1:
        raise ValueError(f"it is for a source vocabulary of {num_offsets - 1} tokens, the model has {source_size}")
    if offsets[0] != 0 or offsets[-1] != num_ids or bool((offsets[1:] < offsets[:-1]).any()):
        raise ValueError("its offsets are out of order")
    if first > target_size or int(ids.max(initial=0)) >= target_size:
        raise ValueError(f"it has ids beyond the target vocabulary of {target_size} tokens")
    return Shortlist(np.arange(first, dtype=np.int64), offsets.astype(np.int64), ids.astype(np.int32))


def _checksum(data: bytes) -> int:
    """Return Marian's checksum of all whole words of 64 bits; a last half one does not count."""
    found = 0
    for word in np.frombuffer(data, "<u8", (len(data) - _WORDS_FROM) // 8, _WORDS_FROM).tolist():
        found ^= (word + _GOLDEN + (found << 6) + (found >> 2)) & _MASK
    return found
