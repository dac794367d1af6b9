"""The trailer `server-timing`: on every call with texts, of every API, whether it succeeds or fails."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.grpc_calls import refused
from tests.servers import InProcessServer, distinct_texts

SYNTAX = r"queue;dur=(\d+\.\d), encode;dur=(\d+\.\d), decode;dur=(\d+\.\d), total;dur=(\d+\.\d)"
TIMEOUT = 30.0


@pytest.fixture
def channel(server: InProcessServer) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.address) as open_channel:
        yield open_channel


def ours(**changes: Any) -> Any:
    return pb.TranslateRequest(
        **({"texts": distinct_texts(3), "source_language_code": "en", "target_language_code": "de"} | changes)
    )


def googles() -> Any:
    return google_pb.TranslateTextRequest(
        parent="projects/p", contents=distinct_texts(1), source_language_code="en", target_language_code="de"
    )


def kserves() -> Any:
    request = kserve_pb.ModelInferRequest(model_name="tiny")
    request.inputs.add(name="text", datatype="BYTES", shape=[1]).contents.bytes_contents.append(
        distinct_texts(1)[0].encode()
    )
    return request


def trailer(call: Any) -> str | None:
    return dict(call.trailing_metadata()).get("server-timing")


def timing(call: Any) -> list[float]:
    """Return the milliseconds of queue, encode, decode and total."""
    value = trailer(call)
    assert value is not None
    match = re.fullmatch(SYNTAX, value)
    assert match, value
    return [float(each) for each in match.groups()]


def call_ours(channel: grpc.Channel) -> Any:
    return pb_grpc.TranslationServiceStub(channel).Translate.with_call(ours(), timeout=TIMEOUT)[1]


def call_googles(channel: grpc.Channel) -> Any:
    return google_grpc.TranslationServiceStub(channel).TranslateText.with_call(googles(), timeout=TIMEOUT)[1]


def call_kserves(channel: grpc.Channel) -> Any:
    return kserve_grpc.GRPCInferenceServiceStub(channel).ModelInfer.with_call(kserves(), timeout=TIMEOUT)[1]


def stream_ours(channel: grpc.Channel) -> Any:
    return read(pb_grpc.TranslationServiceStub(channel).TranslateStream(ours(), timeout=TIMEOUT))


def stream_kserves(channel: grpc.Channel) -> Any:
    stub = kserve_grpc.GRPCInferenceServiceStub(channel)
    return read(stub.ModelStreamInfer(iter([kserves()]), timeout=TIMEOUT))


def read(stream: Any) -> Any:
    assert list(stream)
    return stream


@pytest.mark.parametrize("ask", [call_ours, call_googles, call_kserves, stream_ours, stream_kserves])
def test_phases_are_told_and_fit_into_the_whole(channel: grpc.Channel, ask: Callable[[grpc.Channel], Any]) -> None:
    began = time.monotonic()
    call = ask(channel)
    outside = 1000 * (time.monotonic() - began)
    queue, encode, decode, total = timing(call)
    assert encode > 0
    assert decode > 0
    assert max(queue, encode, decode) <= total + 0.1
    assert total <= outside + 0.1
    assert "x-request-id" in dict(call.trailing_metadata())


def test_the_parts_of_one_call_add_up_to_no_more_than_the_whole(channel: grpc.Channel) -> None:
    queue, encode, decode, total = timing(
        pb_grpc.TranslationServiceStub(channel).Translate.with_call(ours(texts=distinct_texts(40)), timeout=TIMEOUT)[1]
    )
    assert queue + encode + decode <= total + 0.2  # four numbers are rounded
    assert encode + decode > total / 4  # the engine's phases are included


def test_a_call_that_fails_tells_how_long_it_took(channel: grpc.Channel) -> None:
    error = refused(pb_grpc.TranslationServiceStub(channel).Translate, ours(target_language_code="xx"), timeout=TIMEOUT)
    assert error.code() is grpc.StatusCode.NOT_FOUND
    queue, encode, decode, total = timing(error)
    assert (queue, encode, decode) == (0, 0, 0)
    assert total >= 0


def test_calls_without_texts_tell_nothing(channel: grpc.Channel) -> None:
    _, call = pb_grpc.TranslationServiceStub(channel).ListModels.with_call(pb.ListModelsRequest(), timeout=TIMEOUT)
    assert trailer(call) is None
