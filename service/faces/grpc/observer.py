"""Follows every call from its arrival to its end, and tells metrics, access log and traces of it."""

import contextlib
from collections.abc import Iterator
from typing import Protocol

from service.domain import call_record, request_id
from service.domain.call_record import CallRecord
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors

Metadata = tuple[tuple[str, str | bytes], ...]


class Span(Protocol):
    """The trace of one call; see `service.observe.tracing`."""

    def end(self, record: CallRecord) -> None:
        """The call is over."""
        ...


class Tracer(Protocol):
    """Where traces begin; see `service.observe.tracing`."""

    def begin(self, record: CallRecord, metadata: Metadata) -> Span | None:
        """A call arrived with this metadata; `None` for one that is not traced."""
        ...


class CallObserver:
    """What counts, logs and traces calls."""

    def __init__(
        self, metrics: Metrics, errors: RecentErrors, access_log: AccessLog, tracer: Tracer | None = None
    ) -> None:
        self._metrics = metrics
        self._errors = errors
        self._access_log = access_log
        self._tracer = tracer

    def refused(self, method: str, code: str, message: str) -> None:
        """A call of this method was refused with this status before it was looked at."""
        self._metrics.call_refused(method, code)
        self._errors.note(request_id.current(), method, code, message)

    @contextlib.contextmanager
    def call(self, method: str, metadata: Metadata = ()) -> Iterator[CallRecord]:
        """Follow a call of this method, such as `package.Service/Method`, through the `with` block.

        Whoever answers it notes in the record what it did, and its `code` before the block ends. One on a stream is
        by the stream's caller.
        """
        record = CallRecord(method, request_id.current())
        call_record.begin(record)
        span = self._tracer.begin(record, metadata) if self._tracer else None
        self._metrics.call_started()
        try:
            yield record
        finally:
            record.end()
            self._metrics.call_finished(method, record.code, record.total_seconds, record.trace_id)
            self._access_log.finished(record)
            if record.message:
                self._errors.note(record.request_id, method, record.code, record.message)
            if span is not None:
                span.end(record)
