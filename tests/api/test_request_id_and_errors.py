"""Request ids, and internal errors, of which a caller learns nothing but the id."""

import logging
from typing import Any

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import refused, request_of
from tests.patience import patient
from tests.servers import InProcessServer, eventually

GOOD = request_of(["Hello"])
KEY = "x-request-id"


def trailer(call: Any) -> Any:
    return next((item.value for item in call.trailing_metadata() if item.key == KEY), None)


def ask(stub: pb_grpc.TranslationServiceStub, request: Any = GOOD, **metadata: Any) -> Any:
    _, call = stub.Translate.with_call(
        request, timeout=patient(30), metadata=[(KEY, value) for value in metadata.values()]
    )
    return trailer(call)


def test_the_callers_id_comes_back(stub: pb_grpc.TranslationServiceStub) -> None:
    assert ask(stub, id="order-66/a") == "order-66/a"


def test_a_call_without_one_gets_one_of_its_own(stub: pb_grpc.TranslationServiceStub) -> None:
    first, second = ask(stub), ask(stub)
    assert first
    assert second
    assert first != second


@pytest.mark.parametrize("unusable", ["", " ", "two words", "x" * 129])
def test_an_id_that_can_not_be_used_is_replaced(stub: pb_grpc.TranslationServiceStub, unusable: str) -> None:
    assert ask(stub, id=unusable).strip() not in ("", unusable)


def test_refused_calls_carry_it_too(stub: pb_grpc.TranslationServiceStub) -> None:
    error = refused(stub.Translate, pb.TranslateRequest(), metadata=[(KEY, "mine")])
    assert trailer(error) == "mine"


def test_an_unexpected_error_is_internal_logged_and_not_told(
    server: InProcessServer,
    stub: pb_grpc.TranslationServiceStub,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(request: Any) -> None:
        raise ValueError("secret detail")

    monkeypatch.setattr(server.server.translator, "translate", broken)
    with caplog.at_level(logging.ERROR):
        error = refused(stub.Translate, GOOD, metadata=[(KEY, "find-me")])
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in error.details()
    assert "find-me" in error.details()
    (record,) = [record for record in caplog.records if "find-me" in record.getMessage()]
    assert record.exc_info
    assert "secret detail" in str(record.exc_info[1])
    method = "dragoman.v1.TranslationService/Translate"
    # Counted after the caller has its answer.
    eventually(lambda: server.metric("dragoman_requests_total", method=method, code="INTERNAL") == 1)
