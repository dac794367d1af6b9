"""Limits on a call's bytes, characters and metadata; and what the server must not disclose."""

from collections.abc import Callable, Iterator

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from service.config.server_config import ServerConfig
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.grpc_calls import refused, request_of
from tests.patience import patient
from tests.servers import InProcessServer, LoopThread, in_process, rpc_error

MAX_CHARACTERS, MAX_BYTES, MAX_METADATA = 40, 1024, 2000
EXACT, TOO_MUCH = ["a" * 15, "é" * 25], ["a" * 15, "é" * 26]


@pytest.fixture(scope="module")
def channel(loop_thread: LoopThread, tiny_models: object) -> Iterator[grpc.Channel]:
    config = ServerConfig(
        models=tiny_models,  # type: ignore[arg-type]
        num_threads=1,
        max_characters=MAX_CHARACTERS,
        max_request_bytes=MAX_BYTES,
        max_metadata_bytes=MAX_METADATA,
        reflection=False,
    )
    with in_process(loop_thread, config) as server, grpc.insecure_channel(server.address) as opened:
        yield opened


def ours(channel: grpc.Channel, texts: list[str]) -> object:
    request = request_of(texts)
    return pb_grpc.TranslationServiceStub(channel).Translate(request, timeout=patient(30))


def ours_detected(channel: grpc.Channel, texts: list[str]) -> object:
    request = pb.TranslateRequest(texts=texts, target_language_code="de")
    return pb_grpc.TranslationServiceStub(channel).Translate(request, timeout=patient(30))


def streamed(channel: grpc.Channel, texts: list[str]) -> object:
    request = request_of(texts)
    return list(pb_grpc.TranslationServiceStub(channel).TranslateStream(request, timeout=patient(30)))


def detection(channel: grpc.Channel, texts: list[str]) -> object:
    return pb_grpc.TranslationServiceStub(channel).DetectLanguage(
        pb.DetectLanguageRequest(texts=texts), timeout=patient(30)
    )


def googles(channel: grpc.Channel, texts: list[str]) -> object:
    request = google_pb.TranslateTextRequest(
        parent="projects/p", contents=texts, source_language_code="en", target_language_code="de"
    )
    return google_grpc.TranslationServiceStub(channel).TranslateText(request, timeout=patient(30))


def kserves(channel: grpc.Channel, texts: list[str]) -> object:
    request = kserve_pb.ModelInferRequest(model_name="tiny")
    request.inputs.add(name="text", datatype="BYTES", shape=[2]).contents.bytes_contents.extend(
        text.encode() for text in texts
    )
    return kserve_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=patient(30))


def kserves_in_parts(channel: grpc.Channel, texts: list[str]) -> object:
    request = kserve_pb.ModelInferRequest(model_name="tiny")
    for name, values in (("text", texts), ("source_language", ["en", ""])):
        tensor = request.inputs.add(name=name, datatype="BYTES", shape=[2])
        tensor.contents.bytes_contents.extend(value.encode() for value in values)
    return kserve_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=patient(30))


@pytest.mark.parametrize("call", [ours, ours_detected, streamed, detection, googles, kserves, kserves_in_parts])
def test_all_texts_of_a_call_together_have_a_limit(
    channel: grpc.Channel, call: Callable[[grpc.Channel, list[str]], object]
) -> None:
    assert call(channel, EXACT)
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, TOO_MUCH)
    error = rpc_error(raised)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "have 41 characters in total; allowed are 40 per call. Send several calls." in error.details()


def test_a_message_has_a_limit(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        ours(channel, ["a" * 2 * MAX_BYTES])
    error = rpc_error(raised)
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
    def services(asked: grpc.Channel) -> list[reflection_pb2.ServerReflectionResponse]:
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        return list(
            reflection_pb2_grpc.ServerReflectionStub(asked).ServerReflectionInfo(iter([request]), timeout=patient(30))
        )

    with grpc.insecure_channel(server.address) as other:
        assert services(other)
    with pytest.raises(grpc.RpcError) as raised:
        services(channel)
    assert rpc_error(raised).code() is grpc.StatusCode.UNIMPLEMENTED
