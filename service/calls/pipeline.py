"""The pipeline of every call, shared by all protocols; faces wrap it and add protocol-specific parts.

begin (id, origin) -> identify (API key) -> admit (queue) -> serve (record, log, trace, metrics, quota, errors).
A call rejected before it is served goes through `refuse`, which costs less: it is counted, but not logged or traced.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from service.calls.failures import failed
from service.calls.gate import Gate
from service.calls.least_time import LeastTime
from service.calls.metadata import Metadata, api_key_in, request_id_in
from service.calls.observer import CallObserver
from service.domain.call import Call, Phase, begin_call, origin_of_call
from service.domain.errors import DeadlineExceeded, Overloaded, ServiceError
from service.domain.translation import Priority
from service.observe.metrics import Metrics

_RETRY_SECONDS = 0.1

T = TypeVar("T")


class CallPipeline:
    """The pipeline of every call. All methods belong to the event loop's thread."""

    def __init__(
        self,
        metrics: Metrics,
        observer: CallObserver,
        overload: Callable[[Priority], Overloaded | None],
        gate: Gate | None = None,
    ) -> None:
        """Use `overload`, which is `Translator.overload`. Without a `gate`, callers need no key."""
        self._metrics = metrics
        self._observer = observer
        self._overload = overload
        self._gate = gate
        self._least_time = LeastTime()

    @property
    def asks_for_keys(self) -> bool:
        return self._gate is not None

    def begin(self, method: str, metadata: Metadata, *caller: Hashable, protocol: str = "") -> Call:
        """Begin a call, which becomes the current call of this task.

        `method` has no leading slash; `caller` is as for `origin_of_call`; names in `metadata` are in lower case.
        """
        call = Call(method, request_id_in(metadata), origin_of_call(*caller), protocol=protocol)
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
        """Return whose the bytes are that a call holds: its key's, or its host's where none is needed.

        All who have no key where others need one are one owner, as they are no reason to reject those.
        """
        return call.key_name if self._gate is not None else str(call.origin[0])

    def check_time(self, left_seconds: float) -> None:
        """Check that a call has enough time left, before anything of it is processed."""
        least = self._least_time.seconds(time.monotonic())
        if left_seconds < least:
            raise Overloaded(
                "less than {least:.2f} s of the call's time are left, which calls take at the moment",
                _RETRY_SECONDS,
                least=least + 0.005,  # rounded up
                advice="try again later, or allow more time",
            )

    def admit(self, priority: Callable[[], Priority]) -> None:
        """Check the queues before the call's message is processed.

        `priority` is only called if a call of normal priority would be rejected, so most messages are parsed once.
        """
        overload = self._overload(Priority.NORMAL)
        if overload is not None and (own := priority()) is not Priority.NORMAL:
            overload = self._overload(own)
        if overload is not None:
            raise overload

    def refuse(self, call: Call, error: Exception) -> ServiceError:
        """Count a call rejected with this error, and return the error for its caller."""
        failure = failed(call, error, self._metrics)
        self._observer.refused(call)
        return failure

    def count(self, call: Call, code: str = "OK") -> None:
        """Count a call that ended before it was served and is nobody's error: it was answered at sight, or given up."""
        call.code = code
        call.end()
        self._metrics.call_refused(call.method, call.code)

    async def serve(
        self,
        call: Call,
        work: Callable[[], Awaitable[T]],
        metadata: Metadata = (),
        is_late: Callable[[], bool] = lambda: False,
        *,
        is_background: bool = False,
        takes_tokens: bool = True,
    ) -> T:
        """Run `work`, observed and within the caller's quotas, and return its result.

        `is_late` returns whether the call's deadline has passed. With `is_background` the work belongs to a call that
        was answered, or will be while the work goes on. Unless it `takes_tokens`, the quota of these does not count.
        """
        span = self._observer.begin(call, metadata)
        try:
            if self._gate is None or call.caller is None:
                answer = await work()
            else:
                gate = self._gate
                with gate.work(call.caller) if is_background else gate.call(call.caller, takes_tokens=takes_tokens):
                    answer = await work()
            call.end()
            if not is_background:  # which takes longer than the calls that it is to be compared with
                self._learn(call, is_late=is_late())
            return answer
        except asyncio.CancelledError:
            has_time = not is_late()
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
