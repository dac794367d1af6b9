"""What becomes of a call that raised: counted if it was refused, logged if it is the server's own fault."""

import logging

import grpc

from service.domain import request_id
from service.domain.errors import (
    InvalidRequest,
    NotFound,
    NotPossible,
    Overloaded,
    ServiceError,
    TooLate,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from service.faces.grpc.status import RpcStatus, status_of
from service.observe.metrics import Metrics

_LOG = logging.getLogger(__name__)

_REJECTIONS = (InvalidRequest, NotFound, Unimplemented, NotPossible, Overloaded, TooLate, Unauthenticated, Unavailable)


def status_of_failure(error: Exception, method: str, metrics: Metrics) -> RpcStatus:
    """The status of the call at hand, of this method, which raised `error`. Callers are told nothing of a bug but where
    to read of it."""
    if isinstance(error, ServiceError):
        if isinstance(error, _REJECTIONS):
            metrics.rejected(error.reason)
        return status_of(error)
    identifier = request_id.current()
    _LOG.error("request %s failed: %s", identifier, method, exc_info=error)
    message = f"internal error; the server's log says more about request {identifier}."
    return RpcStatus(grpc.StatusCode.INTERNAL, message, redacted=message)
