"""Answers in JSON, and errors: the status of each over HTTP, their form in our own API, names of fields in others."""

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from service.calls.failures import code_of
from service.domain.call import Call
from service.domain.errors import Overloaded, Path, ServiceError, Spelling, dotted
from service.faces.http.application import HttpAnswer
from service.faces.http.refusals import Refused

JSON = "application/json"
EVENTS = "text/event-stream"
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # a proxy must pass each event on at once

_SOURCE = "source_language_code"  # the only field of ours that an advice names
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
    return _STATUS.get(code, HTTPStatus.INTERNAL_SERVER_ERROR)


def status_of_error(error: ServiceError) -> HTTPStatus:
    return error.status if isinstance(error, Refused) else status_of(code_of(error))


def retry_headers(error: ServiceError) -> Mapping[str, str]:
    """Return the header that says when to retry; none unless the server, or a quota, is exhausted."""
    if isinstance(error, Overloaded):
        return {"Retry-After": str(math.ceil(error.retry_after_seconds))}
    return _NO_HEADERS


def in_json(document: Any, headers: Mapping[str, str] = _NO_HEADERS, status: int = HTTPStatus.OK) -> HttpAnswer:
    return HttpAnswer(status, JSON, json_bytes(document), headers)


def failure_in_json(document: Any, status: HTTPStatus) -> HttpAnswer:
    """Return the document as a failed call's answer; if a key was missing, with the header that asks for one."""
    return in_json(document, _ASKS_FOR_KEY if status is HTTPStatus.UNAUTHORIZED else _NO_HEADERS, status)


def json_bytes(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def event_bytes(document: Any, name: str = "") -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return b"%sdata: %s\n\n" % (head, json_bytes(document))


def failure(error: ServiceError, call: Call) -> HttpAnswer:
    """Return an error: its code, the field, what is allowed, and a complete sentence."""
    return failure_in_json(error_document(error, call), status_of_error(error))


def error_document(error: ServiceError, call: Call) -> dict[str, Any]:
    about = {"code": code_of(error), "reason": error.reason, "message": str(error)}
    for name, text in (("field", error.field), ("allowed", error.allowed), ("advice", error.advice)):
        if text:
            about[name] = text
    return {"error": {**about, "request_id": call.request_id}}


def spelling_of(names: Mapping[str, str]) -> Spelling:
    """Return the spelling of an API's fields; `names` maps ours to theirs, where they differ."""

    def spelled(path: Path) -> str:
        return dotted(Path(names.get(str(path[0]), path[0]), *path[1:]))

    return spelled


def spell(error: ServiceError, names: Mapping[str, str], spelling: Spelling | None = None) -> None:
    error.spelling = spelling or spelling_of(names)
    error.advice = error.advice.replace(_SOURCE, names.get(_SOURCE, _SOURCE))
