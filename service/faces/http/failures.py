"""Errors as our own API and our pages return them."""

from typing import Any

from service.calls.failures import code_of
from service.domain.call import Call
from service.domain.errors import ServiceError
from service.faces.http.answers import failure_in_json, status_of_error
from service.faces.http.application import HttpAnswer


def failure(error: ServiceError, call: Call) -> HttpAnswer:
    """Return an error: its code, the field, what is allowed, and a sentence that says it all."""
    return failure_in_json(error_document(error, call), status_of_error(error))


def error_document(error: ServiceError, call: Call) -> dict[str, Any]:
    """Return an error as data."""
    about = {"code": code_of(error), "reason": error.reason, "message": str(error)}
    for name, text in (("field", error.field), ("allowed", error.allowed), ("advice", error.advice)):
        if text:
            about[name] = text
    return {"error": {**about, "request_id": call.request_id}}
