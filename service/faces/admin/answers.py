"""Answers of the admin port, in JSON, with headers that keep other web pages out."""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from service.calls.failures import code_of
from service.domain.errors import ServiceError
from service.faces.http import answers
from service.faces.http.application import HttpAnswer

Document = dict[str, Any]

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def of_error(error: ServiceError) -> HttpAnswer:
    """Return the answer to a call that failed."""
    return failure(code_of(error), str(error), answers.retry_headers(error))


def failure(code: str, message: str, headers: Mapping[str, str] = MappingProxyType({})) -> HttpAnswer:
    """Return an error: the name of a status, which decides HTTP's, and what is wrong."""
    return in_json({"error": {"code": code, "message": message}}, headers, answers.status_of(code))


def in_json(
    document: Document, headers: Mapping[str, str] = MappingProxyType({}), status: HTTPStatus = HTTPStatus.OK
) -> HttpAnswer:
    """Return the document as an answer; `headers` are added to those of every answer."""
    return answers.in_json(document, {**HEADERS, **headers}, status)
