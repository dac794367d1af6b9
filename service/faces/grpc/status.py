"""Conversion of service errors into gRPC statuses, with the details that clients act on."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from service.bundle.fields import MAX_NAME_BYTES
from service.calls.failures import code_of
from service.domain.errors import InvalidRequest, NotFound, Overloaded, ServiceError

ERROR_DOMAIN = "dragoman"


Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True, slots=True)
class RpcStatus:
    """The status of a failed call."""

    code: grpc.StatusCode
    message: str
    trailing_metadata: Metadata = ()


def status_of(error: ServiceError) -> RpcStatus:
    """Convert an error into a status, with `google.rpc` details in the trailing metadata.

    `BadRequest` names an invalid field, `ResourceInfo` a missing resource, `ErrorInfo` the reason of any error.
    `RetryInfo`, and `grpc-retry-pushback-ms` for gRPC's own retries, give the delay before the next call to an
    overloaded server.
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
        name = error.resource_name[:MAX_NAME_BYTES]  # metadata is limited to 8 KiB, and a caller may give megabytes
        details.append(error_details_pb2.ResourceInfo(resource_type=error.resource_type, resource_name=name))
    return _status(_code_of(error), error.reason, message, details)


@functools.lru_cache  # hundreds a second, few of them different
def _status_of_overload(code: grpc.StatusCode, reason: str, message: str, milliseconds: int) -> RpcStatus:
    delay = Duration()
    delay.FromMilliseconds(milliseconds)
    status = _status(code, reason, message, [error_details_pb2.RetryInfo(retry_delay=delay)])
    pushback = ("grpc-retry-pushback-ms", str(milliseconds))
    return replace(status, trailing_metadata=(*status.trailing_metadata, pushback))


def _status(code: grpc.StatusCode, reason: str, message: str, details: Iterable[Message]) -> RpcStatus:
    status = status_pb2.Status(code=code.value[0], message=message)
    for each in (*details, error_details_pb2.ErrorInfo(reason=reason.upper(), domain=ERROR_DOMAIN)):
        status.details.add().Pack(each)
    return RpcStatus(code, message, tuple(rpc_status.to_status(status).trailing_metadata))


def _code_of(error: ServiceError) -> grpc.StatusCode:
    return grpc.StatusCode[code_of(error)]
