"""Errors as Google's REST APIs return them.

The details are those of `faces/grpc/status.py`, in JSON. See google.aip.dev/193 for v3; v2 has the form of Google's
older APIs, which also list `errors`.
"""

from http import HTTPStatus
from typing import Any

from service.bundle.fields import MAX_NAME_BYTES
from service.calls.failures import code_of
from service.domain.call import Call
from service.domain.errors import InvalidRequest, NotFound, Overloaded, ServiceError
from service.faces.grpc.status import ERROR_DOMAIN
from service.faces.http.answers import failure_in_json, status_of_error
from service.faces.http.application import HttpAnswer

Document = dict[str, Any]

_TYPES = "type.googleapis.com/google.rpc"
_REASONS = {
    HTTPStatus.BAD_REQUEST: "invalid",
    HTTPStatus.UNAUTHORIZED: "authError",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.NOT_FOUND: "notFound",
    HTTPStatus.TOO_MANY_REQUESTS: "rateLimitExceeded",
    HTTPStatus.NOT_IMPLEMENTED: "notImplemented",
    HTTPStatus.SERVICE_UNAVAILABLE: "backendError",
    HTTPStatus.GATEWAY_TIMEOUT: "backendError",
}


def failure_of_v3(error: ServiceError, _: Call) -> HttpAnswer:
    """Return an error of v3: its status, a complete sentence, and `google.rpc` details."""
    return _answer(_document(error))


def failure_of_v2(error: ServiceError, _: Call) -> HttpAnswer:
    """Return an error of v2: as in v3, and with the list `errors`."""
    document = _document(error)
    reason = _REASONS.get(HTTPStatus(document["code"]), "internalError")
    about = {"message": document["message"], "domain": "global", "reason": reason}
    if error.field:
        about |= {"locationType": "parameter", "location": error.field}
    return _answer({**document, "errors": [about]})


def _document(error: ServiceError) -> Document:
    code = code_of(error)
    return {"code": status_of_error(error).value, "message": str(error), "status": code, "details": _details(error)}


def _details(error: ServiceError) -> list[Document]:
    details: list[Document] = []
    if isinstance(error, InvalidRequest) and error.field:
        violation = {"field": error.field, "description": str(error)}
        details.append({"@type": f"{_TYPES}.BadRequest", "fieldViolations": [violation]})
    if isinstance(error, NotFound) and error.resource_type:
        name = error.resource_name[:MAX_NAME_BYTES]
        details.append({"@type": f"{_TYPES}.ResourceInfo", "resourceType": error.resource_type, "resourceName": name})
    if isinstance(error, Overloaded):
        delay = max(0.001, error.retry_after_seconds)
        details.append({"@type": f"{_TYPES}.RetryInfo", "retryDelay": f"{delay:.3f}s"})
    details.append({"@type": f"{_TYPES}.ErrorInfo", "reason": error.reason.upper(), "domain": ERROR_DOMAIN})
    return details


def _answer(document: Document) -> HttpAnswer:
    return failure_in_json({"error": document}, HTTPStatus(document["code"]))
