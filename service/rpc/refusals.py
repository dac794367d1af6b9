"""Ends calls before anything is made of them: those that are refused so are counted, and not traced or logged."""

from typing import NoReturn

from service.metrics import Metrics
from service.rpc import request_id
from service.rpc.absent_callers import end
from service.rpc.failures import status_of_failure
from service.rpc.interceptors import Context
from service.rpc.observer import CallObserver


class Refusals:
    """For interceptors outside of those that note what becomes of a call."""

    def __init__(self, metrics: Metrics, observer: CallObserver) -> None:
        self._metrics = metrics
        self._observer = observer

    async def refuse(self, method: str, error: Exception, context: Context) -> NoReturn:
        """End a call of this method, without a leading slash, with the status that belongs to the error.

        Raises:
            AbortError: always; or CancelledError, as for `end`.
        """
        identifier = request_id.begin(context.invocation_metadata() or ())
        status = status_of_failure(error, method, self._metrics)
        self._observer.refused(method, status.code.name, status.message)
        await end(context, status, ((request_id.METADATA_KEY, identifier),))
