"""The one table from the tree of service errors to gRPC status codes, with the details that clients act on."""

from dataclasses import dataclass

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from service.errors import (
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

_MAX_NAME_LENGTH = 256  # metadata has room for 8 KiB, and a caller may name something in megabytes

Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True, slots=True)
class RpcStatus:
    """What ends a failed call."""

    code: grpc.StatusCode
    message: str
    trailing_metadata: Metadata = ()


def status_of(error: ServiceError) -> RpcStatus:
    """Turn an error into a status, with `google.rpc` details in the trailing metadata.

    `BadRequest` names the field of an invalid request, `ResourceInfo` what was not found; `RetryInfo`, and
    `grpc-retry-pushback-ms` for gRPC's own retries, say when an overloaded server wants to be asked again. `ErrorInfo`
    has the reason of any error, for programs.
    """
    code = next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)
    message = str(error)
    status = status_pb2.Status(code=code.value[0], message=message)
    pushback: Metadata = ()
    if isinstance(error, InvalidRequest) and error.field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=message)
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    if isinstance(error, NotFound) and error.resource_type:
        name = error.resource_name[:_MAX_NAME_LENGTH]
        resource = error_details_pb2.ResourceInfo(resource_type=error.resource_type, resource_name=name)
        status.details.add().Pack(resource)
    if isinstance(error, Overloaded):
        milliseconds = max(1, round(error.retry_after_seconds * 1000))
        delay = Duration()
        delay.FromMilliseconds(milliseconds)
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
        pushback = (("grpc-retry-pushback-ms", str(milliseconds)),)
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=error.reason.upper(), domain=ERROR_DOMAIN))
    details: Metadata = tuple(rpc_status.to_status(status).trailing_metadata)
    return RpcStatus(code, message, details + pushback)
