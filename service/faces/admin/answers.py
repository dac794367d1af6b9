"""Answers of the admin port, in JSON, with headers that keep other web pages out."""

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from service.calls.failures import code_of
from service.domain.errors import Overloaded, ServiceError
from service.faces.http.application import HttpAnswer

Document = dict[str, Any]

CHANGE_SECONDS = 600.0  # for loading, unloading and reloading, which continue after that
LAST_SECONDS = 2.0  # for an answer that arrives at the deadline
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# As google.api.http maps them.
_HTTP_STATUS = {
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


def of_error(error: ServiceError) -> HttpAnswer:
    """Return the answer to a call that failed."""
    headers = {}
    if isinstance(error, Overloaded):
        headers["Retry-After"] = str(math.ceil(error.retry_after_seconds))
    return failure(code_of(error), str(error), headers)


def failure(code: str, message: str, headers: Mapping[str, str] = MappingProxyType({})) -> HttpAnswer:
    """Return an error: the name of a status, which decides HTTP's, and what is wrong."""
    status = _HTTP_STATUS.get(code, HTTPStatus.INTERNAL_SERVER_ERROR)
    return in_json({"error": {"code": code, "message": message}}, headers, status)


def in_json(
    document: Document, headers: Mapping[str, str] = MappingProxyType({}), status: HTTPStatus = HTTPStatus.OK
) -> HttpAnswer:
    """Return the document as an answer; `headers` are added to those of every answer."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return HttpAnswer(status, "application/json", body, {**HEADERS, **headers})
