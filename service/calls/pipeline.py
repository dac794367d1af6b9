"""What every call goes through, whatever its protocol; faces wrap it and add what is theirs.

begin (id, origin) -> identify (API key) -> admit (queue) -> serve (record, log, trace, metrics, quota, errors).
A call that is turned away before it is served is refused, which costs less: it is counted, not logged or traced.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from service.calls.failures import failed
from service.calls.metadata import Metadata, api_key_in, request_id_in
from service.calls.observer import CallObserver
from service.domain.call import Call, begin_call
from service.domain.errors import Overloaded, ServiceError
from service.domain.origin import origin_of_call
from service.domain.translation import Priority
from service.observe.metrics import Metrics

if TYPE_CHECKING:
    from service.calls.gate import Gate  # takes a while to import

T = TypeVar("T")


def _never() -> bool:
    return False


class CallPipeline:
    """The way of every call through the server. All methods belong to the event loop's thread."""

    def __init__(
        self,
        metrics: Metrics,
        observer: CallObserver,
        overload: Callable[[Priority], Overloaded | None],
        gate: "Gate | None" = None,
    ) -> None:
        """`overload` is `Translator.overload`. Without a `gate` nobody is asked for a key."""
        self._metrics = metrics
        self._observer = observer
        self._overload = overload
        self._gate = gate

    @property
    def asks_for_keys(self) -> bool:
        """Whether callers need an API key."""
        return self._gate is not None

    def begin(self, method: str, metadata: Metadata, *caller: Hashable, protocol: str = "") -> Call:
        """Begin a call, which this task serves from now on.

        `method` has no leading slash; `caller` is as for `origin_of_call`; names in `metadata` are in lower case.
        """
        call = Call(method, request_id_in(metadata), origin_of_call(*caller), protocol=protocol)
        begin_call(call)
        return call

    def identify(self, call: Call, metadata: Metadata, *, needs_key: bool = True) -> None:
        """Find out whose key a call has, if the server asks for keys: from here on it is that caller's.

        Raises:
            Unauthenticated: the key is unknown or has expired, or there is none and the call `needs_key`.
        """
        if self._gate is None:
            return
        key = api_key_in(metadata)
        if key or needs_key:
            call.caller = self._gate.caller(key)
            call.origin = origin_of_call(call.caller.name)  # wherever it comes from

    def admit(self, priority: Callable[[], Priority]) -> None:
        """Look at the queues before anything is made of the call's message.

        `priority` is only asked where a call of normal priority would be refused: so most messages are parsed once.

        Raises:
            Overloaded: every model has too much to do.
        """
        overload = self._overload(Priority.NORMAL)
        if overload is not None and (own := priority()) is not Priority.NORMAL:
            overload = self._overload(own)
        if overload is not None:
            raise overload

    def refuse(self, call: Call, error: Exception) -> ServiceError:
        """Count a call that is turned away with this error, and return what its caller is told."""
        failure = failed(call, error, self._metrics)
        self._observer.refused(call)
        return failure

    async def serve(
        self,
        call: Call,
        work: Callable[[], Awaitable[T]],
        metadata: Metadata = (),
        is_late: Callable[[], bool] = _never,
    ) -> T:
        """Return what `work` returns: observed, and within the caller's quotas.

        `is_late` says of a call that was cancelled whether its deadline had passed.

        Raises:
            ServiceError: whatever went wrong.
            CancelledError: the caller has gone.
        """
        with self._observer.observed(call, metadata):
            try:
                with self._quota(call):
                    answer = await work()
                call.end()
                return answer
            except asyncio.CancelledError:
                call.code = "DEADLINE_EXCEEDED" if is_late() else "CANCELLED"
                raise
            except Exception as error:
                raise failed(call, error, self._metrics) from None
            except BaseException:
                call.code = "UNKNOWN"
                raise

    async def guard(self, call: Call, work: Callable[[], Awaitable[T]]) -> T:
        """Return what `work` returns, for a stream of requests, each of which is served as a call of its own.

        Raises:
            ServiceError: whatever went wrong.
        """
        try:
            return await work()
        except Exception as error:
            raise failed(call, error, self._metrics) from None

    def _quota(self, call: Call) -> AbstractContextManager[None]:
        """One call of its caller's, as long as it takes.

        Raises:
            Unauthenticated: the key has been taken back meanwhile.
            QuotaExceeded: the call is one too many.
        """
        return nullcontext() if self._gate is None or call.caller is None else self._gate.call(call.caller)
