"""The pipeline of every call, shared by all protocols; faces wrap it and add protocol-specific parts.

begin (id, origin) -> identify (API key) -> admit (queue) -> serve (record, log, trace, metrics, quota, errors). A call
rejected before it is served goes through `refuse`, which is cheaper: it is counted, not logged or traced.
"""

import asyncio
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar

from service.calls.failures import failed
from service.calls.gate import Gate
from service.domain.call import Call, CallKind, Phase, begin_call, origin_of_call
from service.domain.errors import DeadlineExceeded, Overloaded, ServiceError
from service.domain.translation import Priority
from service.engine.costs import Average
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors

if TYPE_CHECKING:  # it imports OpenTelemetry, an extra
    from service.observe.tracing import CallSpan, Tracing

Metadata = Iterable[tuple[str, str | bytes]]

REQUEST_ID_KEY = "x-request-id"

_chance = random.Random()  # of ids, which protect nothing; `os.urandom` takes a system call
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_SCHEMES = ("bearer ", "deepl-auth-key ")  # of the header authorization; the second is sent by DeepL's clients
_API_KEYS = ("x-api-key", "x-goog-api-key")  # the second is sent by Google's clients

# Of `LeastTime`.
_LATE_SHARE = 0.05  # of the accepted calls
_STEP = 1 / 16  # of the typical time, at each call that ends
_MOST = 3.0  # typical times; a larger bound can keep out all calls with short deadlines
_HALF_LIFE_SECONDS = 0.5

T = TypeVar("T")


def request_id_in(metadata: Metadata) -> str:
    """Return the caller's request id, or a new one if it is missing or invalid. Names are in lower case."""
    for key, value in metadata:
        if key == REQUEST_ID_KEY:
            if isinstance(value, str) and _REQUEST_ID.fullmatch(value):
                return value
            break
    return f"{_chance.getrandbits(64):016x}"


def api_key_in(metadata: Metadata) -> str:
    texts = {name: value for name, value in metadata if isinstance(value, str)}
    authorization = texts.get("authorization", "")
    for scheme in _SCHEMES:
        if authorization[: len(scheme)].lower() == scheme:
            return authorization[len(scheme) :].strip()
    return next((texts[name] for name in _API_KEYS if name in texts), "")


class CallObserver:
    """Counts, logs and traces calls."""

    def __init__(
        self, metrics: Metrics, errors: RecentErrors, access_log: AccessLog, tracer: "Tracing | None" = None
    ) -> None:
        self._metrics = metrics
        self._errors = errors
        self._access_log = access_log
        self._tracer = tracer

    def refused(self, call: Call) -> None:
        """Count a call that was rejected before processing; it is neither traced nor logged."""
        self._metrics.call_refused(call)
        self._errors.note(call.request_id, call.method, call.code, call.message)

    def begin(self, call: Call, metadata: Metadata = ()) -> "CallSpan | None":
        """Begin to observe a call, and return its span if it is traced; `end` must follow, whatever happens.

        The code that answers the call records its work in it, and sets its `code` before it ends.
        """
        call.began_seconds = time.monotonic()
        self._metrics.call_started()
        return self._tracer.begin(call, metadata) if self._tracer else None

    def end(self, call: Call, span: "CallSpan | None") -> None:
        call.end()
        self._metrics.call_finished(call)
        if call.caller is not None and call.is_answered:
            self._metrics.key_answered(call)
        self._access_log.finished(call)
        if call.message:
            self._errors.note(call.request_id, call.method, call.code, call.message)
        if span is not None:
            span.end(call)
        call.forget()


class CallPipeline:
    """The pipeline of every call. All methods belong to the event loop's thread."""

    def __init__(
        self,
        metrics: Metrics,
        observer: CallObserver,
        overload: Callable[[Priority], Overloaded | None],
        gate: Gate | None = None,
    ) -> None:
        """Take `Translator.overload`. Without a `gate`, callers need no key."""
        self._metrics = metrics
        self._observer = observer
        self._overload = overload
        self._gate = gate
        self._least_time = LeastTime()

    @property
    def asks_for_keys(self) -> bool:
        return self._gate is not None

    def knows(self, methods: Iterable[tuple[str, CallKind]]) -> None:
        for method, kind in methods:
            self._metrics.knows_method(method, kind)

    def begin(
        self,
        method: str,
        metadata: Metadata,
        *caller: Hashable,
        protocol: str = "",
        kind: CallKind = CallKind.OTHER,
    ) -> Call:
        """Begin a call, which becomes the current call of this task.

        `method` has no leading slash; `caller` is as for `origin_of_call`; names in `metadata` are in lower case.
        """
        call = Call(method, request_id_in(metadata), origin_of_call(*caller), protocol=protocol, kind=kind)
        begin_call(call)
        return call

    def identify(self, call: Call, metadata: Metadata, *, needs_key: bool = True) -> None:
        """Identify the caller by the key, if the server requires keys, and assign the call to it."""
        if self._gate is None:
            return
        key = api_key_in(metadata)
        if key or needs_key:
            call.caller = self._gate.caller(key)
            call.origin = origin_of_call(call.caller.name)  # regardless of its address

    def owner(self, call: Call) -> str:
        """Return the owner of the bytes that a call holds: its key or, where none is needed, its host.

        All callers without a key, where others need one, are one owner, so that they can't crowd out those.
        """
        return call.key_name if self._gate is not None else str(call.origin[0])

    def check_time(self, left_seconds: float) -> None:
        least = self._least_time.seconds(time.monotonic())
        if left_seconds < least:
            raise Overloaded(
                "less than {least:.2f} s of the call's time are left, and calls currently take that long",
                retry_after_seconds=0.1,
                least=least + 0.005,  # rounded up
                advice="try again later, or allow more time",
            )

    def admit(self, priority: Callable[[], Priority]) -> None:
        """Check the queues before the message is parsed; `priority` is called only where NORMAL would be rejected."""
        overload = self._overload(Priority.NORMAL)
        if overload is not None and (own := priority()) is not Priority.NORMAL:
            overload = self._overload(own)
        if overload is not None:
            raise overload

    def refuse(self, call: Call, error: Exception) -> ServiceError:
        failure = failed(call, error, self._metrics)
        self._observer.refused(call)
        return failure

    def count(self, call: Call, code: str = "OK") -> None:
        """Count a call that ended unserved and without an error: a preflight, or a client that left."""
        call.code = code
        call.end()
        self._metrics.call_refused(call)

    async def serve(
        self,
        call: Call,
        work: Callable[[], Awaitable[T]],
        metadata: Metadata = (),
        time_left: Callable[[], float | None] = lambda: None,
        *,
        is_background: bool = False,
        takes_tokens: bool = True,
    ) -> T:
        """Run `work`, observed and within the caller's quotas, and return its result.

        `time_left` returns the seconds until the deadline, if there is one. With `is_background`, the call is answered
        before `work` ends. Unless it `takes_tokens`, the token quota does not count.
        """
        span = self._observer.begin(call, metadata)
        try:
            if self._gate is None or call.caller is None:
                answer = await work()
            else:
                gate, caller = self._gate, call.caller
                counted = gate.work(caller) if is_background else gate.call(caller, takes_tokens=takes_tokens)
                with counted as call.grants:
                    answer = await work()
            call.end()
            if not is_background:  # which takes longer than the calls that it is to be compared with
                left = time_left()
                self._learn(call, is_late=left is not None and left <= 0)
            return answer
        except asyncio.CancelledError:
            left = time_left()
            has_time = left is None or left > 0
            call.code = "CANCELLED" if has_time else "DEADLINE_EXCEEDED"
            if not has_time:
                self._learn(call, is_late=True)
            raise
        except Exception as error:
            if isinstance(error, DeadlineExceeded) and not is_background:
                self._learn(call, is_late=True)
            raise failed(call, error, self._metrics) from None
        except BaseException:
            call.code = "UNKNOWN"
            raise
        finally:
            self._observer.end(call, span)

    async def guard(self, call: Call, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work` for a stream of requests, each served as a call of its own, and return its result."""
        try:
            return await work()
        except Exception as error:
            raise failed(call, error, self._metrics) from None

    def _learn(self, call: Call, *, is_late: bool) -> None:
        if is_late:
            self._least_time.late(time.monotonic())
        elif call.num_texts == 1:  # as most calls; others take longer for reasons of their own
            self._least_time.in_time(call.total_seconds - call.seconds(Phase.QUEUE), time.monotonic())


class LeastTime:
    """Learns the least time that calls must have left, from those that end in time and those that end late.

    Beyond the event loop's capacity, calls wait in gRPC's queue, first in, first out. All have little time left when
    the server sees them, and end late. Rejecting them at once costs less, so the queue shrinks until others have enough
    time. Waiting for the engine is left to `service.engine.admission`.

    Follows a quantile by stochastic approximation (Robbins and Monro, "A Stochastic Approximation Method", 1951): late
    calls raise the value and others lower it, so that `_LATE_SHARE` of the accepted calls are late. It is at most
    `_MOST` typical times, as longer calls are late for other reasons, and halves every `_HALF_LIFE_SECONDS`, as a value
    that rejects all calls would never change. Times are in seconds of any monotonic clock.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._moved_seconds = 0.0  # the moment
        self._typical = Average()  # of calls in time

    def seconds(self, now_seconds: float) -> float:
        """Return the least time; 0 if calls are in time."""
        if not self._seconds:
            return 0.0
        return self._seconds * math.exp2((self._moved_seconds - now_seconds) / _HALF_LIFE_SECONDS)

    def in_time(self, seconds: float, now_seconds: float) -> None:
        """Learn from a call that ended in time; it took `seconds` apart from waiting for the engine."""
        self._typical.add(seconds, 1)
        if self._seconds:
            self._move(-_LATE_SHARE, now_seconds)

    def late(self, now_seconds: float) -> None:
        self._move(1.0 - _LATE_SHARE, now_seconds)

    def _move(self, steps: float, now_seconds: float) -> None:
        typical = self._typical.mean
        self._seconds = min(max(self.seconds(now_seconds) + steps * _STEP * typical, 0.0), _MOST * typical)
        self._moved_seconds = now_seconds
