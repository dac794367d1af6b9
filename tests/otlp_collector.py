"""A span collector on loopback that receives what OpenTelemetry's exporter sends."""

import contextlib
import threading
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as pb_grpc

from tests.patience import patient


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as received; times are nanoseconds since 1970, ids hexadecimal."""

    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    began: int
    ended: int
    is_error: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]

    @property
    def seconds(self) -> float:
        return (self.ended - self.began) / 1e9


class OtlpCollector(pb_grpc.TraceServiceServicer):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """A collector that keeps every span."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.endpoint = ""
        self._lock = threading.Lock()

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802
        for of_resource in request.resource_spans:
            resource = _values(of_resource.resource.attributes)
            with self._lock:
                self.spans += [_received(span, resource) for scope in of_resource.scope_spans for span in scope.spans]
        return pb.ExportTraceServiceResponse()

    def named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]

    def children(self, parent: ReceivedSpan) -> list[ReceivedSpan]:
        return sorted(
            (span for span in self.spans if span.parent_id == parent.span_id and span.trace_id == parent.trace_id),
            key=lambda span: (span.began, span.ended),
        )


@contextlib.contextmanager
def otlp_collector() -> Iterator[OtlpCollector]:
    collector = OtlpCollector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    pb_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    collector.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait(patient(5))


def _received(span: Any, resource: dict[str, Any]) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        kind=span.kind,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        is_error=span.status.code == span.status.STATUS_CODE_ERROR,
        attributes=_values(span.attributes),
        resource=resource,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
