"""Errors as DeepL returns them: https://developers.deepl.com/docs/best-practices/error-handling."""

from http import HTTPStatus

from service.calls.failures import code_of
from service.domain.call import Call
from service.domain.errors import (
    NotFound,
    PairNotFound,
    QuotaExceeded,
    ServiceError,
    TooLong,
    TooMany,
    Unauthenticated,
    Unimplemented,
)
from service.faces.http.answers import in_json, spell, spelling_of, status_of_error
from service.faces.http.application import HttpAnswer

QUOTA_EXCEEDED = 456  # not one of HTTP's; clients don't try again

_FIELDS = {
    "texts": "text",
    "source_language_code": "source_lang",
    "target_language_code": "target_lang",
    "mime_type": "tag_handling",
    "glossary": "glossary_id",
}
spelled = spelling_of(_FIELDS)  # how a field is called here
_LANGUAGES = ("source_lang", "target_lang")


def failure(error: ServiceError, call: Call) -> HttpAnswer:
    """Return an error: a complete sentence, and the call's id."""
    spell(error, _FIELDS, spelled)
    message = str(error)
    if error.field in _LANGUAGES:
        message = f"Value for '{error.field}' not supported: {message}"
    document = {"message": message, "detail": f"{code_of(error)}, request {call.request_id}"}
    return in_json(document, status=status_for(error))


def status_for(error: ServiceError) -> int:
    """Return the status that DeepL gives an error of this kind.

    Its clients retry on 429 and from 500 on. Callers who have used up the tokens of a minute had better wait for the
    next one, as `/v2/usage` tells.
    """
    if isinstance(error, QuotaExceeded) and error.given.get("unit") == "token":
        return QUOTA_EXCEEDED
    if isinstance(error, Unauthenticated):
        return HTTPStatus.FORBIDDEN
    if isinstance(error, TooLong) or (isinstance(error, TooMany) and error.path[:1] in (("text",), ("texts",))):
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    if isinstance(error, PairNotFound | Unimplemented):
        return HTTPStatus.BAD_REQUEST
    if isinstance(error, NotFound):
        return HTTPStatus.NOT_FOUND
    return status_of_error(error)
