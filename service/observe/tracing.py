"""OpenTelemetry spans of calls, and its only importer: loaded only if there is an endpoint for spans.

A call's span starts on arrival, as its trace id is needed at once; the spans of its phases are created at its end.
"""

import threading
import time
from collections.abc import Iterable

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace import Tracer as OtelTracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.domain.call import Call

_PROPAGATED = ("traceparent", "tracestate")
# Statuses that are the server's fault, which count as errors in a server's span.
_FAULTS = {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}


class Tracing:
    """Sends spans to an OTLP collector, in batches and on its own thread."""

    def __init__(self, endpoint: str, ratio: float, version: str) -> None:
        """Send spans to `endpoint`, such as `http://host:4317`, or `https://` for TLS.

        A share `ratio` of calls without a W3C trace context is traced, and calls whose context is sampled.
        OpenTelemetry's environment variables apply, too, such as OTEL_RESOURCE_ATTRIBUTES and
        OTEL_EXPORTER_OTLP_HEADERS.
        """
        ours = Resource({"service.name": "dragoman", "service.version": version})
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(ratio)),
            resource=ours.merge(OTELResourceDetector().detect()),
            shutdown_on_exit=False,
        )
        exporter = OTLPSpanExporter(endpoint=endpoint, insecure=not endpoint.startswith("https://"))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("dragoman", version)
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, call: Call, metadata: Iterable[tuple[str, str | bytes]]) -> "CallSpan | None":
        carrier = {key: value for key, value in metadata if key in _PROPAGATED and isinstance(value, str)}
        clock = _WallClock()
        attributes = {"rpc.method": call.method}
        if call.protocol:
            attributes["rpc.system.name"] = call.protocol
        span = self._tracer.start_span(
            call.method,
            context=self._propagator.extract(carrier) if carrier else None,
            kind=SpanKind.SERVER,
            attributes=attributes,
            start_time=clock.nanoseconds(call.began_seconds),
        )
        if not span.is_recording():
            return None
        call.trace_id = format_trace_id(span.get_span_context().trace_id)
        return CallSpan(self._tracer, span, clock)

    def close(self, timeout_seconds: float) -> bool:
        """Send the remaining spans; return False if that takes longer than the timeout."""
        closing = threading.Thread(target=self._provider.shutdown, name="tracing", daemon=True)
        closing.start()
        closing.join(timeout_seconds)
        return not closing.is_alive()


class CallSpan:
    """The span of one call in progress."""

    def __init__(self, tracer: OtelTracer, span: Span, clock: "_WallClock") -> None:
        self._tracer = tracer
        self._span = span
        self._clock = clock

    def end(self, call: Call) -> None:
        span = self._span
        span.set_attribute("rpc.response.status_code", call.code)
        span.set_attribute("dragoman.request_id", call.request_id)
        if call.code in _FAULTS:
            span.set_status(Status(StatusCode.ERROR))
            span.set_attribute("error.type", call.code)
        if call.num_texts:
            span.set_attribute("dragoman.texts", call.num_texts)
            span.set_attribute("dragoman.source_tokens", call.num_source_tokens)
            span.set_attribute("dragoman.output_tokens", call.num_output_tokens)
        if call.model:
            span.set_attribute("dragoman.model", call.model)
            span.set_attribute("dragoman.model_version", call.model_version)
        context = set_span_in_context(span)
        for phase, began, ended in call.intervals:
            child = self._tracer.start_span(phase.value, context, start_time=self._clock.nanoseconds(began))
            child.end(self._clock.nanoseconds(ended))
        span.end(self._clock.nanoseconds(call.ended_seconds))


class _WallClock:
    """Converts `time.monotonic()` to Unix time. One per call: if the clock is set, differences stay correct."""

    def __init__(self) -> None:
        self._distance = time.time_ns() - time.monotonic_ns()

    def nanoseconds(self, seconds: float) -> int:
        return round(seconds * 1e9) + self._distance
