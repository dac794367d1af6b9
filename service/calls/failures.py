"""Conversion of exceptions into errors for callers, with the name of their status."""

import logging

from service.domain.call import Call
from service.domain.errors import (
    Cancelled,
    DeadlineExceeded,
    EngineFailure,
    Forbidden,
    InvalidRequest,
    NotFound,
    NotPossible,
    Overloaded,
    Public,
    ServiceError,
    TooLate,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from service.observe.metrics import Metrics

_LOG = logging.getLogger(__name__)

# Names of google.rpc.Code, for every protocol.
CODES: dict[type[ServiceError], str] = {
    InvalidRequest: "INVALID_ARGUMENT",
    NotFound: "NOT_FOUND",
    Unimplemented: "UNIMPLEMENTED",
    NotPossible: "FAILED_PRECONDITION",
    Overloaded: "RESOURCE_EXHAUSTED",
    Unauthenticated: "UNAUTHENTICATED",
    Forbidden: "PERMISSION_DENIED",
    Unavailable: "UNAVAILABLE",
    DeadlineExceeded: "DEADLINE_EXCEEDED",
    Cancelled: "CANCELLED",
    EngineFailure: "INTERNAL",
    ServiceError: "INTERNAL",
}

_ENDS = (DeadlineExceeded, Cancelled, EngineFailure, ServiceError)  # of calls that were accepted
_REJECTIONS: tuple[type[ServiceError], ...] = (TooLate, *(kind for kind in CODES if kind not in _ENDS))


def code_of(error: ServiceError) -> str:
    return next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)


def failed(call: Call, error: Exception, metrics: Metrics) -> ServiceError:
    """Record an error in its call, count rejections, and return it for the caller; of bugs, a reference to the log."""
    if isinstance(error, ServiceError):
        if isinstance(error, _REJECTIONS):
            metrics.rejected(call, error.reason)
        failure = error
    else:
        _LOG.error("%s failed", call.method, exc_info=error)  # every line of a call has its id
        failure = ServiceError(
            "internal error; see request {id} in the server's log", id=Public(call.request_id), advice="report it"
        )
    call.code, call.message = code_of(failure), failure.redacted
    return failure
