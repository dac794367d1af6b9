"""Answers in JSON, and the status of each error over HTTP."""

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from service.calls.failures import code_of
from service.domain.errors import Overloaded, ServiceError
from service.faces.http.application import HttpAnswer
from service.faces.http.refusals import Refused

JSON = "application/json"
EVENTS = "text/event-stream"
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # a proxy must pass each event on at once

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_ASKS_FOR_KEY: Mapping[str, str] = MappingProxyType({"WWW-Authenticate": "Bearer"})
# As google.api.http maps them.
_STATUS = {
    "INVALID_ARGUMENT": HTTPStatus.BAD_REQUEST,
    "FAILED_PRECONDITION": HTTPStatus.BAD_REQUEST,
    "UNAUTHENTICATED": HTTPStatus.UNAUTHORIZED,
    "PERMISSION_DENIED": HTTPStatus.FORBIDDEN,
    "NOT_FOUND": HTTPStatus.NOT_FOUND,
    "RESOURCE_EXHAUSTED": HTTPStatus.TOO_MANY_REQUESTS,
    "UNIMPLEMENTED": HTTPStatus.NOT_IMPLEMENTED,
    "UNAVAILABLE": HTTPStatus.SERVICE_UNAVAILABLE,
    "DEADLINE_EXCEEDED": HTTPStatus.GATEWAY_TIMEOUT,
}


def status_of(code: str) -> HTTPStatus:
    """Return HTTP's status for the name of one of google.rpc.Code."""
    return _STATUS.get(code, HTTPStatus.INTERNAL_SERVER_ERROR)


def status_of_error(error: ServiceError) -> HTTPStatus:
    """Return HTTP's status for an error."""
    return error.status if isinstance(error, Refused) else status_of(code_of(error))


def retry_headers(error: ServiceError) -> Mapping[str, str]:
    """Return the header that tells when to try again; none unless the server, or a quota, is exhausted."""
    if isinstance(error, Overloaded):
        return {"Retry-After": str(math.ceil(error.retry_after_seconds))}
    return _NO_HEADERS


def in_json(document: Any, headers: Mapping[str, str] = _NO_HEADERS, status: int = HTTPStatus.OK) -> HttpAnswer:
    """Return the document as an answer."""
    return HttpAnswer(status, JSON, json_bytes(document), headers)


def failure_in_json(document: Any, status: HTTPStatus) -> HttpAnswer:
    """Return the document as the answer to a call that failed; if a key was missing, with how to send one."""
    return in_json(document, _ASKS_FOR_KEY if status is HTTPStatus.UNAUTHORIZED else _NO_HEADERS, status)


def json_bytes(document: Any) -> bytes:
    """Return the document in JSON, as short as it can be."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
