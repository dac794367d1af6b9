"""Reading of callers' bodies: JSON and forms, validated against types."""

import functools
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from service.domain.errors import InvalidRequest, Path, Public, Quoted, TooMany, quoted
from service.faces.http.answers import JSON
from service.faces.http.application import HttpRequest
from service.faces.http.forms import fields_of
from service.faces.json_text import (
    check_encoding,
    check_escapes,
    check_json,
    looks_like_json,
    shown_as_json,
    without_mark,
)

T = TypeVar("T")

FORM = "application/x-www-form-urlencoded"

_FEWER = "send fewer, or several calls"
_EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
}


def content_type(request: HttpRequest) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(request: HttpRequest) -> bool:
    """Return whether a body is JSON: by its type, or, as many clients send another one or none, by its beginning."""
    given = content_type(request)
    return given in (JSON, "") or given.endswith(("/json", "+json")) or looks_like_json(request.body)


def is_form(request: HttpRequest) -> bool:
    """Return whether a body is a URL-encoded form; `curl -d` and others send JSON under this type, too."""
    return content_type(request) == FORM and not looks_like_json(request.body)


def json_of(request: HttpRequest, kind: type[T]) -> T:
    """Parse JSON as `kind`, any type for pydantic; raise `InvalidRequest` for others or another Content-Type."""
    if not is_json(request):
        raise InvalidRequest("Content-Type is {given}", given=content_type(request), allowed=JSON)
    return from_json(request.body, kind)


def from_json(body: bytes, kind: type[T]) -> T:
    """Read JSON, whatever it was called; raise `InvalidRequest` if it is malformed, mistyped or has too many values."""
    check_json(body)
    body = without_mark(body)
    try:
        read: T = _adapter(kind).validate_json(body)
    except ValidationError as error:
        check_encoding(body)
        check_escapes(body)
        raise _invalid(error) from None
    return read


def checked(values: object, kind: type[T]) -> T:
    """Check values that are no JSON, such as a form's, where numbers are texts; raise `InvalidRequest` if wrong."""
    try:
        found: T = _adapter(kind).validate_python(values, strict=False)
    except ValidationError as error:
        raise _invalid(error) from None
    return found


def form_of(query: str) -> list[tuple[str, str]]:
    """Return a query's fields, in order; raise `InvalidRequest` if they are too many, or not UTF-8."""
    return fields_of(query.encode("latin-1"))


def _adapter(kind: Any) -> TypeAdapter[Any]:
    return _kept_adapter(kind)


@functools.cache
def _kept_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _invalid(error: ValidationError) -> InvalidRequest:
    problem = error.errors(include_url=False)[0]
    kind, where, given = problem["type"], Path(*problem["loc"]), problem["input"]
    context: Mapping[str, Any] = problem.get("ctx", {})
    if kind == "json_invalid":
        subject = "{path} is" if where else "the body is"
        return InvalidRequest(f"{subject} not JSON: {{reason}}", where, reason=Public(str(context["error"])))
    if kind == "too_long":
        number, most = context["actual_length"] or len(given), str(context["max_length"])
        return TooMany("{path} has {number} entries", where, number=number, allowed=most, advice=_FEWER)
    if kind == "string_too_long":
        most = f"up to {context['max_length']}"
        return InvalidRequest("{path} has {number} characters", where, number=len(given), allowed=most)
    if kind == "missing":
        return InvalidRequest("{path} is missing", where)
    if kind == "extra_forbidden":
        return InvalidRequest("{path} is unknown", Path(*map(_shortened, where)), advice="leave it out")
    allowed = str(context["expected"]) if "expected" in context else _EXPECTED.get(kind, "")
    value = Quoted(shown_as_json(given))
    if not where:
        return InvalidRequest("the body is {value}", value=value, allowed=allowed or "an object")
    if allowed:
        return InvalidRequest("{path} is {value}", where, value=value, allowed=allowed)
    return InvalidRequest("{path} is {value}: {reason}", where, value=value, reason=Public(problem["msg"]))


def _shortened(part: str | int) -> str | int:
    return part if isinstance(part, int) else quoted(part)[1:-1]
