"""Rejection on arrival: only while every model is overloaded, and not if the call's priority may still be accepted."""

import asyncio
from typing import Any

import grpc
import pytest

from service.calls.observer import CallObserver
from service.calls.open_calls import OpenCalls
from service.calls.pipeline import CallPipeline
from service.domain.errors import Overloaded
from service.domain.translation import Priority
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors
from tests.unit.faces.grpc.served_call import Context, serve

OWN = "/dragoman.v1.TranslationService/Translate"
GOOGLE = "/google.cloud.translation.v3.TranslationService/TranslateText"
OTHER = "/dragoman.v1.TranslationService/ListModels"


class Busy:
    """A translator that has room for some priorities."""

    def __init__(self, *welcome: Priority) -> None:
        self.welcome = welcome

    def overload(self, priority: Priority) -> Overloaded | None:
        return None if priority in self.welcome else Overloaded("full.", 0.5)


def call(
    method: str, *welcome: Priority, priority: int = 0, body: bytes | None = None
) -> tuple[Any, Metrics, RecentErrors]:
    """Make a call; return its answer or error."""
    metrics, errors = Metrics(), RecentErrors()
    observer = CallObserver(metrics, errors, AccessLog(1.0, with_texts=False))
    pipeline = CallPipeline(metrics, observer, Busy(*welcome).overload)
    message = pb.TranslateRequest(priority=priority).SerializeToString() if body is None else body  # type: ignore[arg-type]
    context = Context(message)

    async def answer(request: bytes, context: Any) -> str:
        return "answered"

    async def scenario() -> Any:
        return await serve(method, answer, context, pipeline, OpenCalls())

    try:
        return asyncio.run(scenario()), metrics, errors
    except grpc.aio.AbortError:
        return context.ended, metrics, errors


@pytest.mark.parametrize("method", [OWN, GOOGLE])
def test_a_call_is_refused_with_its_id_and_a_hint_and_counted(method: str) -> None:
    (code, message, trailers), metrics, errors = call(method)
    assert (code, message) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "full.")
    assert ("x-request-id", "mine") in trailers
    assert ("grpc-retry-pushback-ms", "500") in trailers
    counted = {
        (each.name, each.labels.get("code") or each.labels.get("reason")): each.value for each in metrics.samples()
    }
    assert counted["dragoman_requests_total", "RESOURCE_EXHAUSTED"] == 1
    assert counted["dragoman_rejected_total", "queue_full"] == 1
    assert counted["dragoman_inflight_requests", None] == 0
    (error,) = errors.latest()
    assert (error.request_id, error.code) == ("mine", "RESOURCE_EXHAUSTED")


@pytest.mark.parametrize("method", [OWN, GOOGLE, OTHER])
def test_a_server_with_room_lets_everybody_in(method: str) -> None:
    assert call(method, *Priority)[0] == "answered"


def test_a_call_of_high_priority_may_still_be_let_in() -> None:
    assert call(OWN, Priority.HIGH, priority=pb.PRIORITY_HIGH)[0] == "answered"
    assert call(OWN, Priority.HIGH, priority=pb.PRIORITY_LOW)[0] != "answered"
    assert call(OWN, priority=pb.PRIORITY_HIGH)[0] != "answered"


def test_a_body_that_is_no_message_is_refused_as_anywhere(caplog: pytest.LogCaptureFixture) -> None:
    (code, message, _), metrics, errors = call(OWN, body=b"\xff\xff\xff")
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert message.startswith("the request is not a valid message of this method")
    text = metrics.render()[0].decode()
    assert (
        'dragoman_requests_total{code="INVALID_ARGUMENT",method="dragoman.v1.TranslationService/Translate"} 1.0' in text
    )
    assert 'dragoman_rejected_total{reason="invalid"} 1.0' in text
    assert len(errors.latest()) == 1
    assert not caplog.records


def test_other_methods_are_left_alone() -> None:
    assert call(OTHER)[0] == "answered"
