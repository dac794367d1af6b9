"""Limits on a call's bytes, characters and metadata; and what the server must not disclose."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.grpc_calls import infer_request, refused, request_of, ways_of
from tests.patience import patient
from tests.servers import InProcessServer, Serve

MAX_CHARACTERS, MAX_BYTES, MAX_METADATA = 40, 1024, 2000
EXACT, TOO_MUCH = ["a" * 15, "é" * 25], ["a" * 15, "é" * 26]


@pytest.fixture(scope="module")
def channel(share: Serve) -> Iterator[grpc.Channel]:
    limits = {"max_characters": MAX_CHARACTERS, "max_request_bytes": MAX_BYTES, "max_metadata_bytes": MAX_METADATA}
    with grpc.insecure_channel(share(**limits, reflection=False).address) as opened:
        yield opened


@pytest.mark.parametrize(
    "way", ["Translate", "TranslateStream", "TranslateText", "ModelInfer", "detected", "detection", "parts"]
)
def test_all_texts_of_a_call_together_have_a_limit(channel: grpc.Channel, way: str) -> None:
    own, infer = pb_grpc.TranslationServiceStub(channel), kserve_grpc.GRPCInferenceServiceStub(channel).ModelInfer
    calls: dict[str, Callable[[list[str]], Any]] = {
        **ways_of(channel),
        "detected": lambda texts: own.Translate(
            request_of(texts, source_language_code="", keep_other_languages=True), timeout=patient(30)
        ),
        "detection": lambda texts: own.DetectLanguage(pb.DetectLanguageRequest(texts=texts), timeout=patient(30)),
        "parts": lambda texts: infer(infer_request(*texts, source_language=["en", ""]), timeout=patient(30)),
    }
    assert calls[way](EXACT)
    error = refused(lambda timeout: calls[way](TOO_MUCH))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "have 41 characters in total; allowed are 40 per call. Send several calls." in error.details()


def test_a_message_has_a_limit(channel: grpc.Channel) -> None:
    error = refused(pb_grpc.TranslationServiceStub(channel).Translate, request_of(["a" * 2 * MAX_BYTES]))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED  # gRPC's own error
    assert f"vs. {MAX_BYTES}" in error.details()


def test_metadata_have_a_limit(channel: grpc.Channel) -> None:
    stub = pb_grpc.TranslationServiceStub(channel)
    for _ in range(10):  # between its two limits gRPC would reject calls at random
        stub.ListModels(pb.ListModelsRequest(), timeout=patient(30), metadata=[("x-note", "a" * (MAX_METADATA - 600))])
        error = refused(stub.ListModels, pb.ListModelsRequest(), metadata=[("x-note", "a" * MAX_METADATA)])
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert f"vs. {MAX_METADATA}" in error.details()


def test_reflection_can_be_turned_off(channel: grpc.Channel, server: InProcessServer) -> None:
    def services(asked: grpc.Channel, timeout: float) -> Any:
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        return reflection_pb2_grpc.ServerReflectionStub(asked).ServerReflectionInfo(iter([request]), timeout=timeout)

    with grpc.insecure_channel(server.address) as other:
        assert list(services(other, patient(30)))
    assert refused(partial(services, channel)).code() is grpc.StatusCode.UNIMPLEMENTED
