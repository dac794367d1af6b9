"""The trailer `server-timing`: on every call with texts, of every API, whether it succeeds or fails."""

import re
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import WAYS, refused, request_of, ways_of
from tests.patience import patient
from tests.servers import InProcessServer, distinct_texts

SYNTAX = r"queue;dur=(\d+\.\d), encode;dur=(\d+\.\d), decode;dur=(\d+\.\d), total;dur=(\d+\.\d)"


@pytest.fixture
def channel(server: InProcessServer) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.address) as open_channel:
        yield open_channel


def timing(call: Any) -> list[float]:
    """Return the milliseconds of queue, encode, decode and total."""
    value = dict(call.trailing_metadata())["server-timing"]
    match = re.fullmatch(SYNTAX, value)
    assert match, value
    return [float(each) for each in match.groups()]


@pytest.mark.parametrize("way", WAYS)
def test_phases_are_reported_and_fit_into_the_whole(channel: grpc.Channel, way: str) -> None:
    began = time.monotonic()
    call = ways_of(channel)[way](distinct_texts(3))
    outside = 1000 * (time.monotonic() - began)
    queue, encode, decode, total = timing(call)
    assert encode > 0
    assert decode > 0
    assert max(queue, encode, decode) <= total + 0.1
    assert total <= outside + 0.1
    assert "x-request-id" in dict(call.trailing_metadata())


def test_the_parts_of_one_call_add_up_to_no_more_than_the_whole(channel: grpc.Channel) -> None:
    queue, encode, decode, total = timing(ways_of(channel)["Translate"](distinct_texts(40)))
    assert queue + encode + decode <= total + 0.2  # four numbers are rounded
    assert encode + decode > total / 4  # the engine's phases are included


def test_a_call_that_fails_reports_how_long_it_took(stub: pb_grpc.TranslationServiceStub) -> None:
    error = refused(stub.Translate, request_of(["Hello"], target_language_code="xx"))
    assert error.code() is grpc.StatusCode.NOT_FOUND
    queue, encode, decode, total = timing(error)
    assert (queue, encode, decode) == (0, 0, 0)
    assert total >= 0


def test_calls_without_texts_report_nothing(stub: pb_grpc.TranslationServiceStub) -> None:
    _, call = stub.ListModels.with_call(pb.ListModelsRequest(), timeout=patient(30))
    assert "server-timing" not in dict(call.trailing_metadata())
