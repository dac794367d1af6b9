"""Lists in callers' messages are counted before they are converted."""

import contextlib
import gc
import json
import re
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from service.domain.errors import InvalidRequest, TooMany
from service.faces.dragoman import messages
from service.faces.google import messages as google_messages
from service.faces.grpc.counts import MAXIMA, check_counts_of_json, checked_fields
from service.faces.grpc.json_messages import message_from_json
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.kserve import messages as kserve_messages
from service.faces.kserve.tensors import raw_of
from service.models.language_pairs import LanguagePairs
from tests.unit.models.bare_manifest import MANIFEST

MODEL: Any = SimpleNamespace(name="one", manifest=MANIFEST, pairs=LanguagePairs(MANIFEST))
FAR = 100_000
# Messages that nothing reads, that are always rejected, and the contents whose number a tensor's shape states.
OTHERS = re.compile(r"inference\.(Repository|TraceSetting|LogSettings|InferTensorContents).*")


def mapped(message: Any) -> None:
    messages.request_from_pb(message, 0.0)


def in_json(body: bytes) -> None:
    message_from_json(body, pb.TranslateRequest)


def mapped_from_google(message: Any) -> None:
    google_messages.request_from_pb(message, 0.0)


def mapped_from_kserve(message: Any) -> None:
    kserve_messages.call_from_pb(message, MODEL, now_seconds=0.0, deadline_seconds=1.0)


def keys(number: int) -> dict[str, str]:
    return {f"k{each}": "" for each in range(number)}


def google(**fields: Any) -> google_pb.TranslateTextRequest:
    return google_pb.TranslateTextRequest(**{"parent": "projects/p", "contents": ["a"]} | fields)


def infer(number: int, shape: list[int] | None = None, *, raw: bool, **fields: Any) -> kserve_pb.ModelInferRequest:
    """Return a request with that many texts, and the matching or another shape."""
    message = kserve_pb.ModelInferRequest(model_name="one", **fields)
    tensor = message.inputs.add(name="text", datatype="BYTES", shape=[number] if shape is None else shape)
    if raw:
        message.raw_input_contents.append(raw_of([b""] * number))
    else:
        tensor.contents.bytes_contents.extend([b""] * number)
    return message


def parameters(number: int) -> dict[str, kserve_pb.InferParameter]:
    return {f"triton_{each}": kserve_pb.InferParameter() for each in range(number)}


def with_parameters(number: int) -> kserve_pb.ModelInferRequest:
    message = infer(1, raw=False)
    output = message.outputs.add(name="translation")
    for name in parameters(number):
        output.parameters[name].bool_param = True
    return message


# One of each message that has lists: all of its lists are counted alike.
CASES: dict[str, tuple[Callable[[int], Any], Callable[[Any], object], int, str]] = {
    "texts": (lambda n: pb.TranslateRequest(texts=["a"] * n), mapped, 1024, "texts"),
    "labels": (lambda n: pb.TranslateRequest(labels=keys(n)), mapped, 64, "labels"),
    "detection": (lambda n: pb.DetectLanguageRequest(texts=["a"] * n), checked_fields, 1024, "texts"),
    "JSON": (lambda n: json.dumps({"terms": [{}] * n}).encode(), in_json, 1024, "terms"),
    "JSON, other name": (lambda n: json.dumps({"targetPrefixes": [""] * n}).encode(), in_json, 1024, "target_prefixes"),
    "Google's contents": (lambda n: google(contents=["a"] * n), mapped_from_google, 1024, "contents"),
    "Google's detection": (lambda n: google_pb.DetectLanguageRequest(labels=keys(n)), checked_fields, 64, "labels"),
    "elements": (lambda n: infer(n, raw=False), mapped_from_kserve, 1024, "inputs[text]"),
    "raw elements": (lambda n: infer(n, raw=True), mapped_from_kserve, 1024, "inputs[text]"),
    "dimensions": (lambda n: infer(1, [1] * n, raw=True), mapped_from_kserve, 8, "inputs[text].shape"),
    "parameters": (lambda n: infer(1, raw=True, parameters=parameters(n)), mapped_from_kserve, 64, "parameters"),
    "an output's": (with_parameters, mapped_from_kserve, 64, "outputs[translation].parameters"),
}


@pytest.mark.parametrize("name", CASES)
def test_far_too_many_are_refused_as_fast_as_one_too_many(name: str) -> None:
    make, map_, most, field = CASES[name]
    number = 8_000 if "JSON" in name else FAR

    def refusal(message: Any) -> tuple[TooMany, float]:
        gc.disable()  # it would scan everything left by other tests
        began = time.thread_time()
        with pytest.raises(TooMany) as raised:
            map_(message)
        seconds = time.thread_time() - began
        gc.enable()
        return raised.value, seconds

    refusal(make(most + 1))  # runs one-time work first
    _, least_seconds = refusal(make(most + 1))
    error, seconds = refusal(make(number))
    assert str(error).startswith(f"{field} has {number} entries; allowed: {most}.")
    assert error.field == field
    # JSON is read first: parsed as a message, each of its entries takes 10 times as long.
    assert seconds < least_seconds + (0.15 if "JSON" in name else 0.01)


def test_elements_that_no_shape_tells_of_are_not_looked_at() -> None:
    for message in (infer(FAR, [1], raw=True), infer(FAR, [1], raw=False)):
        began = time.thread_time()
        with pytest.raises(InvalidRequest, match=r"tensor 'text' has"):
            mapped_from_kserve(message)
        assert time.thread_time() - began < 0.01


@pytest.mark.parametrize("name", CASES)
def test_as_many_as_allowed_are_not_refused_for_that(name: str) -> None:
    make, map_, most, _ = CASES[name]
    is_wrong = pytest.raises(InvalidRequest, match="expected one dimension")
    with is_wrong if name == "dimensions" else contextlib.nullcontext():
        map_(make(most))


def _lists(kind: Descriptor) -> Iterator[FieldDescriptor]:
    for field in kind.fields:
        if field.is_repeated:
            yield field
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            yield from _lists(field.message_type)


@pytest.mark.parametrize("file", [pb, google_pb, kserve_pb], ids=["ours", "Google's", "KServe's"])
def test_every_list_that_callers_can_send_has_a_limit(file: Any) -> None:
    counted = {f"{kind.DESCRIPTOR.full_name}.{field}" for kind, most in MAXIMA.items() for field in most}
    asked = {method.input_type for service in file.DESCRIPTOR.services_by_name.values() for method in service.methods}
    found = {field.full_name for kind in asked for field in _lists(kind)}
    assert len(found) > 1
    assert {field for field in found - counted if not OTHERS.fullmatch(field)} == set()
    assert counted & found


def test_what_is_no_object_is_for_the_parser() -> None:
    documents: list[Any] = [[], "texts", None, {"texts": 5}, {"texts": None}]
    for document in documents:
        check_counts_of_json(document, pb.TranslateRequest)
