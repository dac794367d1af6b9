"""Calls over gRPC: rejection on arrival, hosts of callers, callers that have gone."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.calls.open_calls import OpenCalls
from service.calls.pipeline import CallObserver, CallPipeline
from service.domain.call import current_call
from service.domain.errors import Overloaded
from service.domain.translation import Priority
from service.faces.grpc import server
from service.faces.grpc.absent_callers import is_worth_logging
from service.faces.grpc.calls import behaviour_of, host_of
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors
from tests.patience import patient
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


def call(method: str, *welcome: Priority, priority: int = 0) -> tuple[Any, Metrics, RecentErrors]:
    """Make a call; return its answer or error."""
    metrics, errors = Metrics(), RecentErrors()
    observer = CallObserver(metrics, errors, AccessLog(1.0, with_texts=False))
    pipeline = CallPipeline(metrics, observer, Busy(*welcome).overload)
    context = Context(pb.TranslateRequest(priority=priority).SerializeToString())  # type: ignore[arg-type]

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
        (each.name, each.labels.get("code") or each.labels.get("reason")): each.value
        for each in metrics.samples()
        if each.labels.get("method", method[1:]) == method[1:]
    }
    assert counted["dragoman_requests_total", "RESOURCE_EXHAUSTED"] == 1
    assert counted["dragoman_rejected_total", "queue_full"] == 1
    assert counted["dragoman_inflight_requests", None] == 0
    (error,) = errors.latest()
    assert (error.request_id, error.code) == ("mine", "RESOURCE_EXHAUSTED")


@pytest.mark.parametrize(
    ("method", "welcome", "priority", "is_let_in"),
    [
        (OWN, [*Priority], pb.PRIORITY_UNSPECIFIED, True),
        (GOOGLE, [*Priority], pb.PRIORITY_UNSPECIFIED, True),
        (OTHER, [], pb.PRIORITY_UNSPECIFIED, True),
        (OWN, [Priority.HIGH], pb.PRIORITY_HIGH, True),
        (OWN, [Priority.HIGH], pb.PRIORITY_LOW, False),
        (OWN, [], pb.PRIORITY_HIGH, False),
    ],
)
def test_who_is_let_in(method: str, welcome: list[Priority], priority: int, is_let_in: bool) -> None:
    assert (call(method, *welcome, priority=priority)[0] == "answered") is is_let_in


async def in_turn(pipeline: CallPipeline, calls: Sequence[tuple[str, float, float]]) -> list[tuple[str, bool]]:
    """Make calls of a method with some time left at their begin and at their end; return codes, and what was read."""
    codes = []
    for method, left_seconds, left_at_end in calls:
        context = Context()
        context.left_seconds = left_seconds

        async def answer(request: bytes, context: Any, left_seconds: float = left_at_end) -> str:
            current_call().asks_for(["text"])
            context.left_seconds = left_seconds
            return "answered"

        try:
            await serve(method, answer, context, pipeline, OpenCalls())
            codes.append(("OK", context.was_read))
        except grpc.aio.AbortError:
            assert context.ended is not None
            codes.append((context.ended[0].name, context.was_read))
    return codes


def test_calls_with_as_little_time_as_those_that_were_late_are_rejected_unread() -> None:
    metrics = Metrics()
    observer = CallObserver(metrics, RecentErrors(), AccessLog(1.0, with_texts=False))
    pipeline = CallPipeline(metrics, observer, Busy(*Priority).overload)
    taught = [(OWN, 60.0, 59.0)] + [(OWN, 60.0, -0.001)] * 1000
    asked = [(OWN, 1e-9, 1e-9), (GOOGLE, 1e-9, 1e-9), (OTHER, 1e-9, 1e-9), (OWN, 60.0, 59.0)]
    first, *_ = asyncio.run(in_turn(pipeline, asked))
    assert first == ("OK", True)  # nobody was late so far
    *_, own, google, other, ample = asyncio.run(in_turn(pipeline, [*taught, *asked]))
    assert own == google == ("RESOURCE_EXHAUSTED", False)
    assert other == ample == ("OK", True)


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:192.0.2.1:5000", "192.0.2.1"),
        ("ipv6:[::1]:5000", "::"),
        ("ipv6:%5B::1%5D:5000", "::"),
        ("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:5000", "2001:db8:1:2::"),
        ("ipv6:%5Bfe80::1%25eth0%5D:5000", "fe80::"),
        ("ipv6:%5B::ffff:192.0.2.1%5D:5000", "192.0.2.1"),
        ("ipv6:%5Bno address%5D:5000", "no address"),
        ("unix:", "unix"),
        ("unix:/run/dragoman.sock", "unix"),
        ("", ""),
    ],
)
def test_the_host_is_what_connections_have_in_common(peer: str, host: str) -> None:
    assert host_of(peer) == host


@given(st.ip_addresses(v=4), st.ip_addresses(v=6), st.integers(1, 65535))
@settings(derandomize=True, deadline=None)
def test_neither_ports_matter_nor_what_a_host_may_choose(v4: IPv4Address, v6: IPv6Address, port: int) -> None:
    assert host_of(f"ipv4:{v4}:{port}") == host_of(f"ipv4:{v4}:1") == str(v4)
    sibling = IPv6Address(int(v6) ^ 1)
    assert (host_of(f"ipv6:%5B{v6}%5D:{port}") == host_of(f"ipv6:%5B{sibling}%5D:1")) == (v6.ipv4_mapped is None)


@given(st.text(max_size=80))
@settings(derandomize=True, deadline=None)
def test_any_name_is_some_host(peer: str) -> None:
    host_of(peer)
    host_of(f"ipv6:{peer}")


def record_of(message: str, error: Exception) -> logging.LogRecord:
    return logging.LogRecord("x", logging.ERROR, "x.py", 1, message, ("/x/y",), (type(error), error, None))


@pytest.mark.parametrize(
    ("error", "is_worth"), [(grpc.aio.InternalError("failed"), False), (ValueError("a bug"), True)]
)
def test_only_what_tells_of_a_caller_who_went_is_left_out(error: Exception, is_worth: bool) -> None:
    gone = "ExecuteBatchError raised in core by servicer method [%s]"
    assert is_worth_logging(record_of(gone, error)) is is_worth


def test_other_loggers_keep_their_lines(caplog: pytest.LogCaptureFixture) -> None:
    error = grpc.aio.InternalError("failed")
    gone = "ExecuteBatchError raised in core by servicer method [%s]"
    logging.getLogger("service.x").error(gone, "/x/y", exc_info=error)
    assert len(caplog.records) == 1


class Broken:
    """The context of a call whose connection broke, which gRPC has not reported yet."""

    async def write(self, message: bytes) -> None:
        raise grpc.aio.InternalError("failed")


def test_a_library_s_handler_is_cancelled_too() -> None:
    """Such as that of reflection, which yields its answers: it would be logged as a bug of ours."""

    async def answers(requests: Any, context: Any) -> AsyncIterator[bytes]:
        yield b"answer"

    behaviour: Any = behaviour_of(grpc.stream_stream_rpc_method_handler(answers))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(behaviour(None, Broken()))


def test_grpc_logs_them_under_the_name_that_is_filtered() -> None:
    """The name is gRPC's own affair: a version with another one would fill the log."""
    program = f"import grpc.aio, logging; print({server.GRPC_LOGGER!r} in logging.root.manager.loggerDict)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=patient(60), check=True
    )
    assert done.stdout == "True\n"
