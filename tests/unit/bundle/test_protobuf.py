"""Fields are found as protobuf itself writes them, and whatever is damaged is either fields or not readable."""

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.bundle.protobuf import (
    FIXED_32,
    FIXED_64,
    LENGTH,
    VARINT,
    NotReadable,
    fields,
    integers,
    last_part,
    parts,
    text,
)

NUMBERS = st.integers(0, 2**63 - 1)


def varint(value: int) -> bytes:
    """Encode a number of seven bits a byte, the lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def field(number: int, kind: int, value: bytes) -> bytes:
    """Encode a field; `value` has what the type requires."""
    return varint(number << 3 | kind) + value


def part(number: int, value: bytes) -> bytes:
    """Encode a text or a message."""
    return field(number, LENGTH, varint(len(value)) + value)


def test_each_type_of_field_is_found_and_where_its_value_is() -> None:
    values = [(VARINT, varint(300)), (FIXED_64, bytes(8)), (FIXED_32, b"abcd"), (LENGTH, b"\x02hi")]
    data = b"".join(field(number, kind, value) for number, (kind, value) in enumerate(values, start=15))
    found = [(number, kind, data[begin:end]) for number, kind, begin, end in fields(data, 0, len(data))]
    assert found == [(15, VARINT, varint(300)), (16, FIXED_64, bytes(8)), (17, FIXED_32, b"abcd"), (18, LENGTH, b"hi")]
    assert list(fields(data, 0, 3)) == [(15, VARINT, 1, 3)]  # only those between two positions


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4), st.lists(NUMBERS, max_size=4))
def test_what_protobuf_writes_is_read(entries: list[tuple[str, str]], dims: list[int]) -> None:
    tensor = onnx.TensorProto(dims=dims, name="the name")
    for key, value in entries:
        tensor.external_data.add(key=key, value=value)
    data = tensor.SerializeToString()
    assert integers(data, 1) == dims
    assert text(last_part(data, 8)) == "the name"
    assert last_part(data, 12) is None
    found = [(text(last_part(entry, 1)), text(last_part(entry, 2))) for entry in parts(data)[13]]
    assert found == entries


def test_the_last_of_several_counts() -> None:
    assert last_part(part(3, b"first") + part(4, b"other") + part(3, b"last"), 3) == b"last"
    assert text(b"\xffb") == "\\xffb"
    assert text(None) == ""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (field(0, VARINT, b"\x01"), "there is no field at byte 1"),
        (varint(2**29 << 3), "there is no field"),
        (field(1, 3, b""), "there is no field at byte 1"),  # a group, of old
        (field(1, 7, b""), "there is no field at byte 1"),
        (field(1, VARINT, b"\xff" * 10 + b"\x01"), "there is no number"),
        (field(1, VARINT, b"\xff"), "it is truncated"),
        (field(1, FIXED_64, bytes(7)), "it is truncated"),
        (field(1, FIXED_32, bytes(3)), "it is truncated"),
        (part(1, b"abc")[:-1], "it is truncated"),
        (field(1, LENGTH, varint(2**69)), "it is truncated"),
        (varint(300)[:1], "it is truncated"),
    ],
)
def test_what_is_no_field_is_not_readable(data: bytes, message: str) -> None:
    with pytest.raises(NotReadable, match=message):
        list(fields(data, 0, len(data)))


def test_a_packed_number_ends_with_its_field() -> None:
    with pytest.raises(NotReadable, match="truncated"):
        integers(part(1, b"\xff") + part(1, b"\x01"), 1)


@given(st.binary(max_size=40) | st.binary(max_size=20).map(lambda data: part(1, data)))
def test_any_bytes_are_fields_within_them_or_not_readable(data: bytes) -> None:
    end = 0
    try:
        for number, _, begin, stop in fields(data, 0, len(data)):
            assert 0 < number < 2**29
            assert end < begin <= stop <= len(data)
            end = stop
        integers(data, 1)
    except NotReadable:
        return
    assert end == len(data)
