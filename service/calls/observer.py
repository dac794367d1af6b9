"""Observation of every call from its arrival to its end, for metrics, access log, recent errors and traces."""

import time
from typing import Protocol

from service.calls.metadata import Metadata
from service.domain.call import Call
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors


class Span(Protocol):
    """The trace of one call; see `service.observe.tracing`."""

    def end(self, call: Call) -> None:
        """End the span with its call."""


class Tracer(Protocol):
    """Creator of spans; see `service.observe.tracing`."""

    def begin(self, call: Call, metadata: Metadata) -> Span | None:
        """Begin the span of a call with this metadata; return `None` if the call is not traced."""


class CallObserver:
    """Counts, logs and traces calls."""

    def __init__(
        self, metrics: Metrics, errors: RecentErrors, access_log: AccessLog, tracer: Tracer | None = None
    ) -> None:
        self._metrics = metrics
        self._errors = errors
        self._access_log = access_log
        self._tracer = tracer

    def refused(self, call: Call) -> None:
        """Count a call that was rejected before processing; it is neither traced nor logged."""
        self._metrics.call_refused(call.method, call.code)
        self._errors.note(call.request_id, call.method, call.code, call.message)

    def begin(self, call: Call, metadata: Metadata = ()) -> Span | None:
        """Begin to observe a call, and return its span if it is traced; `end` must follow, whatever happens.

        The code that answers the call records its work in it, and sets its `code` before it ends.
        """
        call.began_seconds = time.monotonic()
        self._metrics.call_started()
        return self._tracer.begin(call, metadata) if self._tracer else None

    def end(self, call: Call, span: Span | None) -> None:
        """Record a call that has ended."""
        call.end()
        self._metrics.call_finished(
            call.method, call.code, call.total_seconds, call.trace_id, call.model, call.model_version
        )
        self._access_log.finished(call)
        if call.message:
            self._errors.note(call.request_id, call.method, call.code, call.message)
        if span is not None:
            span.end(call)
        call.forget()
