"""The one table from the tree of service errors to gRPC status codes, with the details that clients act on."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from service.domain.errors import (
    Cancelled,
    DeadlineExceeded,
    EngineFailure,
    InvalidRequest,
    NotFound,
    NotPossible,
    Overloaded,
    ServiceError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)

CODES: dict[type[ServiceError], grpc.StatusCode] = {
    InvalidRequest: grpc.StatusCode.INVALID_ARGUMENT,
    NotFound: grpc.StatusCode.NOT_FOUND,
    Unimplemented: grpc.StatusCode.UNIMPLEMENTED,
    NotPossible: grpc.StatusCode.FAILED_PRECONDITION,
    Overloaded: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
    DeadlineExceeded: grpc.StatusCode.DEADLINE_EXCEEDED,
    Cancelled: grpc.StatusCode.CANCELLED,
    EngineFailure: grpc.StatusCode.INTERNAL,
    ServiceError: grpc.StatusCode.INTERNAL,
}

ERROR_DOMAIN = "dragoman"

_MAX_KEPT_OVERLOADS = 64
_MAX_NAME_LENGTH = 256  # metadata has room for 8 KiB, and a caller may name something in megabytes

Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True, slots=True)
class RpcStatus:
    """What ends a failed call. `redacted` is the message for operators, without the texts that the caller gave."""

    code: grpc.StatusCode
    message: str
    redacted: str
    trailing_metadata: Metadata = ()


def status_of(error: ServiceError) -> RpcStatus:
    """Turn an error into a status, with `google.rpc` details in the trailing metadata.

    `BadRequest` names the field of an invalid request, `ResourceInfo` what was not found; `RetryInfo`, and
    `grpc-retry-pushback-ms` for gRPC's own retries, say when an overloaded server wants to be asked again. `ErrorInfo`
    has the reason of any error, for programs.
    """
    message = str(error)
    if isinstance(error, Overloaded):
        milliseconds = max(1, round(error.retry_after_seconds * 1000))
        return _status_of_overload(_code_of(error), error.reason, message, milliseconds)
    details: list[Message] = []
    if isinstance(error, InvalidRequest) and error.field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=message)
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    if isinstance(error, NotFound) and error.resource_type:
        name = error.resource_name[:_MAX_NAME_LENGTH]
        details.append(error_details_pb2.ResourceInfo(resource_type=error.resource_type, resource_name=name))
    return _status(_code_of(error), error.reason, message, error.redacted, details)


@functools.lru_cache(_MAX_KEPT_OVERLOADS)  # hundreds a second, in which few are different
def _status_of_overload(code: grpc.StatusCode, reason: str, message: str, milliseconds: int) -> RpcStatus:
    delay = Duration()
    delay.FromMilliseconds(milliseconds)
    status = _status(code, reason, message, message, [error_details_pb2.RetryInfo(retry_delay=delay)])
    pushback = ("grpc-retry-pushback-ms", str(milliseconds))
    return replace(status, trailing_metadata=(*status.trailing_metadata, pushback))


def _status(code: grpc.StatusCode, reason: str, message: str, redacted: str, details: Iterable[Message]) -> RpcStatus:
    status = status_pb2.Status(code=code.value[0], message=message)
    for each in (*details, error_details_pb2.ErrorInfo(reason=reason.upper(), domain=ERROR_DOMAIN)):
        status.details.add().Pack(each)
    return RpcStatus(code, message, redacted, tuple(rpc_status.to_status(status).trailing_metadata))


def _code_of(error: ServiceError) -> grpc.StatusCode:
    return next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)
