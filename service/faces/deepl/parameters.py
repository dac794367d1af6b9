"""The parameters of a call: those of a body of JSON or of a form, and of the query."""

from typing import Any, TypeVar

from service.faces.http.application import HttpRequest
from service.faces.http.bodies import checked, form_of, json_of
from service.faces.http.forms import list_name
from service.faces.http.key_fields import KeyField
from service.faces.http.multipart import fields_of_any_form

T = TypeVar("T")

_LISTS = frozenset(
    {"text", "glossary_ids", "ignore_tags", "splitting_tags", "non_splitting_tags", "custom_instructions"}
)
KEY = KeyField("auth_key")  # of older clients


def parameters_in(request: HttpRequest, kind: type[T]) -> T:
    """Return the parameters of a call. In a form, lists are repeated fields; of others the first counts.

    Raises:
        InvalidRequest: one is missing or wrong, or they can't be read.
    """
    return checked(_document(request), kind)


def _document(request: HttpRequest) -> dict[str, Any]:
    of_form = fields_of_any_form(request) if request.body or request.form else []
    document = json_of(request, dict[str, Any]) if of_form is None else {}
    in_fields: dict[str, Any] = {}
    for given, value in (*(of_form or ()), *form_of(request.query)):
        name = list_name(given) or given
        if name in _LISTS:
            in_fields.setdefault(name, []).append(value)
        else:
            in_fields.setdefault(name, value)
    return in_fields | document
