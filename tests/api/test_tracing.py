"""Spans as a collector receives them: their parents, their order in time, and that they contain no text."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from service.domain.call import Call, Phase
from service.observe.tracing import Tracing
from tests.grpc_calls import request_of, stub_of
from tests.otlp_collector import OtlpCollector, otlp_collector
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts, eventually

SERVER = 2  # SpanKind in OTLP
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRANSLATE = "dragoman.v1.TranslationService/Translate"
PHASES = [phase.value for phase in Phase]


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with otlp_collector() as running:
        yield running


def traceparent(sampled: bool) -> tuple[str, str]:
    return ("traceparent", f"00-{TRACE}-{CALLER}-{'01' if sampled else '00'}")


def translate(server: InProcessServer, texts: list[str], *metadata: tuple[str, str], stream: bool = False) -> Any:
    request = request_of(texts)
    with stub_of(server.address) as stub:
        if stream:
            return list(stub.TranslateStream(request, timeout=patient(30), metadata=metadata))
        return stub.Translate(request, timeout=patient(30), metadata=metadata)


def test_a_call_s_span_and_its_phases_belong_to_the_caller_s_trace(serve: Serve, collector: OtlpCollector) -> None:
    server = serve(otlp_endpoint=collector.endpoint, trace_ratio=0.0)
    texts = distinct_texts(2)
    before = time.time_ns()
    translate(server, texts, traceparent(sampled=True), ("x-request-id", "r-1"))
    after = time.time_ns()
    translate(server, distinct_texts(1), traceparent(sampled=False))
    translate(server, distinct_texts(1))
    exemplars = server.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")[2]
    server.close()  # flushes what is left

    (call,) = collector.named(TRANSLATE)
    assert (call.kind, call.trace_id, call.parent_id, call.is_error) == (SERVER, TRACE, CALLER, False)
    assert (
        call.attributes.items()
        >= {
            "rpc.system.name": "grpc",
            "rpc.method": TRANSLATE,
            "rpc.response.status_code": "OK",
            "dragoman.request_id": "r-1",
            "dragoman.model": "tiny",
            "dragoman.model_version": "1",
            "dragoman.texts": 2,
        }.items()
    )
    assert call.attributes["dragoman.source_tokens"] > 2
    assert call.attributes["dragoman.output_tokens"] > 2
    assert call.resource["service.name"] == "dragoman"
    children = collector.children(call)
    assert [child.name for child in children] == PHASES
    assert len(collector.spans) == 1 + len(PHASES)
    # In sequence, within the call, and the call at its wall-clock time.
    moments = [call.began, *(moment for child in children for moment in (child.began, child.ended)), call.ended]
    assert moments == sorted(moments)
    assert before <= call.began < call.ended <= after
    # The engine's phases are contiguous and take nearly all of the time.
    queue, encode, decode = children[1:4]
    assert (queue.ended, encode.ended) == (encode.began, decode.began)
    assert 0 < encode.seconds + decode.seconds <= call.seconds
    words = {word for text in texts for word in text.split()}
    assert not words & set(re.findall(r"\w+", repr(collector.spans)))
    assert f'trace_id="{TRACE}"' in exemplars
    (exemplar,) = (line for line in exemplars.splitlines() if TRACE in line)
    assert exemplar.startswith('dragoman_request_duration_seconds_bucket{code="OK",kind="translate",le="')
    assert TRANSLATE in exemplar


def test_who_brings_no_trace_is_traced_by_the_ratio(serve: Serve, collector: OtlpCollector) -> None:
    server = serve(otlp_endpoint=collector.endpoint, trace_ratio=1.0)
    translate(server, distinct_texts(1))
    translate(server, distinct_texts(1), stream=True)
    translate(server, distinct_texts(1), traceparent(sampled=False))
    translate(server, distinct_texts(1), ("traceparent", "nonsense"))
    with pytest.raises(grpc.RpcError):
        translate(server, [])
    server.close()
    calls = [span for span in collector.spans if span.kind == SERVER]
    assert len({call.trace_id for call in calls}) == len(calls) == 4
    assert not any(call.parent_id or call.is_error for call in calls)
    assert [call.attributes["rpc.response.status_code"] for call in calls] == ["OK"] * 3 + ["INVALID_ARGUMENT"]
    (streamed,) = collector.named(f"{TRANSLATE}Stream")
    assert [child.name for child in collector.children(streamed)] == PHASES


def test_only_the_server_s_faults_are_errors(collector: OtlpCollector) -> None:
    tracing = Tracing(collector.endpoint, 1.0, "0")
    for code in ("OK", "INVALID_ARGUMENT", "INTERNAL"):
        record = Call("m", "r", code=code)
        span = tracing.begin(record, ())
        assert span is not None
        record.end()
        span.end(record)
    assert tracing.close(10.0)
    assert [span.is_error for span in collector.spans] == [False, False, True]
    assert "error.type" not in collector.spans[1].attributes
    assert collector.spans[2].attributes["error.type"] == "INTERNAL"


def test_a_collector_that_does_not_answer_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        tracing = Tracing(f"http://127.0.0.1:{silent.getsockname()[1]}", 1.0, "0")
        record = Call("m", "r")
        span = tracing.begin(record, ())
        assert span is not None
        record.end()
        span.end(record)
        began = time.monotonic()
        assert not tracing.close(0.2)
        assert time.monotonic() - began < 5.0
        # Its retries draw from `random`, for which hypothesis would blame the test that runs then.
        eventually(lambda: "tracing" not in {thread.name for thread in threading.enumerate()})
