"""The client's messages and types: they can share a process with the server's messages, and no field is missing."""

import dataclasses
import enum
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from google.protobuf.descriptor import FieldDescriptor

import dragoman_client
from dragoman_client import Options, RequestFields
from dragoman_client.pb import translation_pb2 as client_pb
from service.domain import translation as domain
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as server_pb
from tests.patience import patient
from tests.servers import REPOSITORY, environment

MESSAGES = client_pb.DESCRIPTOR.message_types_by_name
PYTHON_TYPES = {
    FieldDescriptor.CPPTYPE_INT32: int,
    FieldDescriptor.CPPTYPE_UINT64: int,
    FieldDescriptor.CPPTYPE_DOUBLE: float,
    FieldDescriptor.CPPTYPE_BOOL: bool,
    FieldDescriptor.CPPTYPE_STRING: str,
}


@pytest.mark.parametrize("ending", ["py", "pyi"])
def test_both_copies_are_the_same(ending: str) -> None:
    client = REPOSITORY / f"client/dragoman_client/pb/translation_pb2.{ending}"
    server = REPOSITORY / f"service/faces/grpc/pb/dragoman/v1/translation_pb2.{ending}"
    assert client.read_bytes() == server.read_bytes()


def test_one_process_holds_both() -> None:
    assert client_pb.__name__ != server_pb.__name__
    assert client_pb.DESCRIPTOR is server_pb.DESCRIPTOR
    request: Any = client_pb.TranslateRequest(texts=["Hello"])
    assert server_pb.TranslateRequest.FromString(request.SerializeToString()) == request


def test_users_own_stubs_live_beside_the_client(tmp_path: Path) -> None:
    protoc = [sys.executable, "-m", "grpc_tools.protoc", "-Iproto", f"--python_out={tmp_path}"]
    subprocess.run([*protoc, "dragoman/v1/translation.proto"], cwd=REPOSITORY, check=True, timeout=patient(30))
    script = (
        "from dragoman.v1 import translation_pb2 as own\n"
        "from dragoman_client.pb import translation_pb2 as client\n"
        "assert own.TranslateRequest(texts=['Hello']) == client.TranslateRequest(texts=['Hello'])\n"
    )
    path = os.pathsep.join((str(tmp_path), environment()["PYTHONPATH"]))
    subprocess.run(
        [sys.executable, "-c", script], env=environment() | {"PYTHONPATH": path}, check=True, timeout=patient(30)
    )


@pytest.mark.parametrize(
    ("message", "type_name"),
    [
        ("DecodingOptions", "Options"),
        ("TranslateStreamResponse", "StreamEvent"),
        *((name, name) for name in MESSAGES if hasattr(dragoman_client, name)),
    ],
)
def test_a_type_has_the_fields_of_its_message(message: str, type_name: str) -> None:
    expected = {field.name for field in MESSAGES[message].fields}
    assert {field.name for field in dataclasses.fields(getattr(dragoman_client, type_name))} == expected


@pytest.mark.parametrize("name", ["StreamEvent", "Translation", "Hypothesis", "Segment", "AlignedSpan"])
def test_an_answer_looks_the_same_in_the_server_and_in_the_client(name: str) -> None:
    kind = getattr(domain, name)
    server = list(getattr(kind, "_fields", ())) or [field.name for field in dataclasses.fields(kind)]
    client = [field.name for field in dataclasses.fields(getattr(dragoman_client, name))]
    assert server[: len(client)] == client
    assert server == client or name == "Hypothesis"  # the server's has what only a segment's has


def test_every_message_of_more_than_one_field_has_a_type_or_is_an_envelope() -> None:
    pairs = {"LanguagePair", "PivotedPair"}  # tuples
    envelopes = {"TranslateRequest", "TranslateResponse", "DecodingOptions", "TranslateStreamResponse", *pairs}
    composite = {name for name, message in MESSAGES.items() if len(message.fields) > 1}
    assert {name for name in composite if not hasattr(dragoman_client, name)} == envelopes


def test_options_have_the_types_of_their_fields() -> None:
    hints = get_type_hints(Options)
    for field in MESSAGES["DecodingOptions"].fields:
        of_python, none = get_args(hints[field.name])
        assert (of_python, none) == (PYTHON_TYPES[field.cpp_type], types.NoneType), field.name


def test_a_call_may_set_every_field_of_a_request() -> None:
    positional = {"texts", "source_language_code", "target_language_code"}
    fields = {field.name for field in MESSAGES["TranslateRequest"].fields}
    assert set(RequestFields.__annotations__) == fields - positional


def test_enums_have_every_value() -> None:
    for name, descriptor in client_pb.DESCRIPTOR.enum_types_by_name.items():
        kind: type[enum.Enum] = getattr(dragoman_client, name)
        prefix = descriptor.values[0].name.removesuffix("UNSPECIFIED")
        values = {value.name.removeprefix(prefix) for value in descriptor.values}
        assert set(kind.__members__) | {"UNSPECIFIED"} == values
