"""Our subset of a service compared with the descriptors in its own client: both sides must be compatible."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool


def file_of(path: Path) -> Any:
    """Return our description of a service, which tests have written to a file."""
    return descriptor_pb2.FileDescriptorProto.FromString(path.read_bytes())


def differences(file: Any) -> list[str]:
    """Return the names of our messages and enums with fields or values that the client's do not have."""
    pool = descriptor_pool.Default()
    found = []
    for name, message in _messages_in(file.message_type, file.package):
        theirs = descriptor_pb2.DescriptorProto()
        pool.FindMessageTypeByName(name).CopyToProto(theirs)
        has_same_kind = message.options.map_entry == theirs.options.map_entry
        if not (has_same_kind and _fields_of(message).items() <= _fields_of(theirs).items()):
            found.append(name)
    for enum in file.enum_type:
        known = pool.FindEnumTypeByName(f"{file.package}.{enum.name}").values_by_name
        if any(value.name not in known or value.number != known[value.name].number for value in enum.value):
            found.append(enum.name)
    return found


def methods_of(service: Any) -> set[tuple[Any, ...]]:
    """Return name, types and streaming of each method of a described service."""
    return {
        (each.name, each.input_type, each.output_type, each.client_streaming, each.server_streaming)
        for each in service.method
    }


def _messages_in(messages: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for message in messages:
        name = f"{prefix}.{message.name}"
        yield name, message
        yield from _messages_in(message.nested_type, name)


def _fields_of(message: Any) -> dict[str, tuple[Any, ...]]:
    """Return number, type, label, type name and oneof of each field by its name."""
    return {
        field.name: (
            field.number,
            field.type,
            field.label,
            field.type_name,
            message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else "",
        )
        for field in message.field
    }
