"""Ends calls before anything is made of them: those that are refused so are counted, and not traced or logged."""

from typing import NoReturn

from service.domain import request_id
from service.faces.grpc.absent_callers import end
from service.faces.grpc.failures import status_of_failure
from service.faces.grpc.interceptors import Context
from service.faces.grpc.observer import CallObserver
from service.observe.metrics import Metrics


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
        self._observer.refused(method, status.code.name, status.redacted)
        await end(context, status, ((request_id.METADATA_KEY, identifier),))
