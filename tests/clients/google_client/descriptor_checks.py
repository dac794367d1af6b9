"""Our subset of the service compared with the descriptors in Google's client: both sides must be compatible."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud import translate_v3  # noqa: F401  # fills the pool
from google.protobuf import descriptor_pb2, descriptor_pool

FILE = descriptor_pb2.FileDescriptorProto.FromString(Path(os.environ["FILE_DESCRIPTOR"]).read_bytes())


def messages_in(messages: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for message in messages:
        name = f"{prefix}.{message.name}"
        yield name, message
        yield from messages_in(message.nested_type, name)


MESSAGES = dict(messages_in(FILE.message_type, FILE.package))


def google_message(name: str) -> Any:
    """Return the descriptor of Google's message of the same name."""
    described = descriptor_pb2.DescriptorProto()
    descriptor_pool.Default().FindMessageTypeByName(name).CopyToProto(described)
    return described


@pytest.mark.parametrize("name", MESSAGES)
def test_every_field_is_googles(name: str) -> None:
    ours, theirs = MESSAGES[name], google_message(name)
    of_theirs = {field.name: described(field, theirs) for field in theirs.field}
    assert ours.options.map_entry == theirs.options.map_entry
    assert ours.field
    for field in ours.field:
        assert described(field, ours) == of_theirs[field.name], field.name


def described(field: Any, message: Any) -> tuple[Any, ...]:
    """Return number, type, label, type name and oneof of a field."""
    oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
    return field.number, field.type, field.label, field.type_name, oneof


def test_a_wrong_number_would_be_found() -> None:
    ours = descriptor_pb2.DescriptorProto()
    ours.CopyFrom(MESSAGES[f"{FILE.package}.TranslateTextRequest"])
    theirs = google_message(f"{FILE.package}.TranslateTextRequest")
    of_theirs = {field.name: described(field, theirs) for field in theirs.field}
    ours.field[0].number += 1
    assert described(ours.field[0], ours) != of_theirs[ours.field[0].name]
