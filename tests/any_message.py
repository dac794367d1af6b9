"""Hypothesis strategies for protobuf messages of any type with any values, and for bytes that are damaged messages."""

import functools
import math
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

_MAX_DEPTH = 3
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-(2**31), 2**31 - 1),
}
_EDGES = (-1, 0, 1, 2, 3, 8, 9, 64, 2**31 - 1, 2**31, 2**63 - 1, 2**64 - 1, -(2**31), -(2**63))
_REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e308, -1e308, math.nan, math.inf, -math.inf, 3.4e38)
_TEXTS = (
    *("", "\0", " ", "\n", "a\r\nb", "\U0010ffff", "\ufeff", "é\u0301", "x" * 300, "x" * 100_000, "%s%n", "../../etc"),
    *("{}", "'\"\\", "\x1b[31m", "<p>Hello</p>", "&#x110000;", "𝔘", "-1", "NaN", "*", "/"),
)


def any_message(descriptor: Descriptor, words: tuple[str, ...] = ()) -> st.SearchStrategy[Any]:
    """Generate messages of this type with any of its fields; texts are often drawn from the meaningful `words`."""
    return _message(descriptor, words, _MAX_DEPTH)


def damaged(data: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Generate damaged messages: flipped bits, truncation, repeated parts, unknown fields; or arbitrary bytes."""
    changed = st.builds(change, data, changes())
    return st.one_of(changed, changed, st.binary(max_size=64))


def changes() -> st.SearchStrategy[list[tuple[str, int, int]]]:
    """Generate the kinds of damage that `change` can do to bytes."""
    return st.lists(
        st.tuples(st.sampled_from(_CHANGES), st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=4
    )


_CHANGES = ("flip", "set", "cut", "remove", "twice", "insert", "unknown field", "endless group")


def change(data: bytes, wanted: list[tuple[str, int, int]]) -> bytes:
    """Apply all of the `changes` to the bytes."""
    for kind, place, value in wanted:
        at = place % (len(data) + 1)
        end = at + value % 16
        if kind == "flip":
            data = data[:at] + bytes(byte ^ (1 << value % 8) for byte in data[at : at + 1]) + data[at + 1 :]
        elif kind == "set":
            data = data[:at] + bytes([value]) + data[at + 1 :]
        elif kind == "cut":
            data = data[:at]
        elif kind == "remove":
            data = data[:at] + data[end:]
        elif kind == "twice":
            data = data[:end] + data[at:]
        elif kind == "insert":
            data = data[:at] + bytes([value]) * (value % 16) + data[at:]
        elif kind == "unknown field":
            data += b"\xfa\xff\xff\xff\x0f" + bytes([value]) + bytes(value)  # field number 2**29 - 1, of any length
        else:
            data += b"\x9b\x06" * (value * 8)  # nested groups, none of them terminated
    return data


@functools.cache
def _message(descriptor: Descriptor, words: tuple[str, ...], depth: int) -> st.SearchStrategy[Any]:
    kind = message_factory.GetMessageClass(descriptor)
    fields = list(descriptor.fields)
    if not fields:
        return st.builds(kind)

    @st.composite
    def build(draw: st.DrawFn) -> Message:
        message = kind()
        for field in draw(st.lists(st.sampled_from(fields), unique=True, max_size=6)):
            _fill(draw, message, field, words, depth)
        return message

    return build()


def _fill(draw: st.DrawFn, message: Any, field: FieldDescriptor, words: tuple[str, ...], depth: int) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        keys, values = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        target = getattr(message, field.name)
        for _ in range(draw(st.integers(0, 3))):
            key = draw(_scalar(keys, words))
            if values.message_type is None:
                target[key] = draw(_scalar(values, words))
            elif depth:
                target[key].CopyFrom(draw(_message(values.message_type, words, depth - 1)))
    elif field.message_type is not None:
        if depth and _is_repeated(field):
            nested = _message(field.message_type, words, depth - 1)
            getattr(message, field.name).extend(draw(st.lists(nested, max_size=3)))
        elif depth:
            getattr(message, field.name).CopyFrom(draw(_message(field.message_type, words, depth - 1)))
    elif _is_repeated(field):
        getattr(message, field.name).extend(draw(st.lists(_scalar(field, words), max_size=4)))
    else:
        setattr(message, field.name, draw(_scalar(field, words)))


def _is_repeated(field: Any) -> bool:
    return bool(field.label == FieldDescriptor.LABEL_REPEATED)  # missing from the stubs


@functools.cache
def _scalar(field: FieldDescriptor, words: tuple[str, ...]) -> st.SearchStrategy[Any]:
    kind = field.cpp_type
    if kind in _INTEGERS:
        low, high = _INTEGERS[kind]
        edges = [edge for edge in _EDGES if low <= edge <= high]
        return st.one_of(st.sampled_from(edges), st.integers(0, 5), st.integers(low, high))
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return st.one_of(st.sampled_from(_REALS), st.floats(width=32 if kind == FieldDescriptor.CPPTYPE_FLOAT else 64))
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.one_of(st.binary(max_size=40), st.sampled_from(words or ("x",)).map(_as_element))
    return st.one_of(st.sampled_from(words or _TEXTS), st.sampled_from(_TEXTS), _unicode())


def _as_element(word: str) -> bytes:
    """Encode it as an element of KServe's raw contents: prefixed by its length."""
    data = word.encode()
    return len(data).to_bytes(4, "little") + data


def _unicode() -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
