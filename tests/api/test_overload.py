"""A full queue: calls are rejected immediately with a hint that clients can act on, until there is room again."""

from typing import Any

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from tests.gate import Gate
from tests.grpc_calls import refused, request_of, retry_seconds, stub_of
from tests.patience import patient
from tests.servers import Serve, distinct_texts


def long_call(num_texts: int) -> Any:
    return request_of(distinct_texts(num_texts), options=pb.DecodingOptions(max_output_tokens=24))


def test_a_full_queue_is_resource_exhausted_with_a_hint(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(max_slots=1, max_waiting=64)
    gate = Gate(server, monkeypatch)
    with stub_of(server.address) as stub:
        first = stub.Translate.future(long_call(64), timeout=patient(30))
        gate.wait()
        error = refused(stub.Translate, long_call(64))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "64" in error.details()
        assert "\n" not in error.details()
        assert 0 < retry_seconds(error) <= 60
        gate.open()
        assert len(first.result(timeout=patient(30)).translations) == 64  # accepted calls are not disturbed
        assert len(stub.Translate(long_call(64), timeout=patient(30)).translations) == 64
    assert server.metric("dragoman_rejected_total", reason="queue_full") == 1
