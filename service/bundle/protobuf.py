"""Protobuf's wire format, fields of number, type and value: https://protobuf.dev/programming-guides/encoding."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

VARINT, FIXED_64, LENGTH, FIXED_32 = 0, 1, 2, 5
_FIXED_BYTES = {FIXED_64: 8, FIXED_32: 4}


class NotReadable(Exception):
    """The bytes are not valid fields, or too many."""


def fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the fields between two positions: number, type, and where the value begins and ends."""
    at = start
    while at < end:
        tag, at = _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if not 0 < number < 2**29:
            raise NotReadable(f"there is no field at byte {at}")
        begin = at
        if kind == LENGTH:
            length, begin = _varint(data, at, end)
            at = begin + length
        elif kind == VARINT:
            _, at = _varint(data, at, end)
        elif kind in _FIXED_BYTES:
            at += _FIXED_BYTES[kind]
        else:
            raise NotReadable(f"there is no field at byte {at}")
        if at > end:
            raise NotReadable("it is truncated")
        yield number, kind, begin, at


def parts(data: bytes) -> Mapping[int, list[bytes]]:
    found: dict[int, list[bytes]] = defaultdict(list)
    for number, kind, begin, stop in fields(data, 0, len(data)):
        if kind == LENGTH:
            found[number].append(data[begin:stop])
    return found


def last_part(data: bytes, number: int) -> bytes | None:
    """Return the last message or text of this number, which is the one that counts; `None` if there is none."""
    found = parts(data)[number]
    return found[-1] if found else None


def integers(data: bytes, number: int) -> list[int]:
    """Return the non-negative integers of this number, one a field or packed in one."""
    found = []
    for own, kind, begin, stop in fields(data, 0, len(data)):
        at = begin
        while own == number and kind in (VARINT, LENGTH) and at < stop:
            value, at = _varint(data, at, stop)
            found.append(value)
    return found


def text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "backslashreplace")


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise NotReadable("it is truncated")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise NotReadable(f"there is no number at byte {at}")
