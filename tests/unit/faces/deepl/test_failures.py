"""Errors in the words of DeepL's API."""

import json

import pytest

from service.domain.call import Call
from service.domain.errors import (
    DeadlineExceeded,
    EngineFailure,
    InvalidRequest,
    NotFound,
    NotPossible,
    Overloaded,
    PairNotFound,
    Path,
    Public,
    QuotaExceeded,
    ServiceError,
    TooLong,
    TooMany,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from service.faces.deepl.failures import failure


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (InvalidRequest("{path} is wrong", Path("texts", 1)), 400, "text[1] is wrong."),
        (InvalidRequest("no", advice="give source_language_code"), 400, "no; give source_lang."),
        (
            PairNotFound("no model translates into {target}", "target_language_code", target=Public("xx")),
            400,
            "Value for 'target_lang' not supported: no model translates into xx.",
        ),
        (Unimplemented("no documents"), 400, "no documents"),
        (NotPossible("no folder"), 400, "no folder"),
        (Unauthenticated("the API key is unknown"), 403, "the API key is unknown"),
        (NotFound("there is no glossary", "glossary", "x"), 404, "there is no glossary"),
        (TooLong("{path} are long", Path("texts")), 413, "text are long."),
        (TooMany("{path} has many", Path("texts")), 413, "text has many."),
        (TooMany("many glossaries"), 400, "many glossaries"),
        (Overloaded("the queue is full", 2.0), 429, "the queue is full"),
        (QuotaExceeded("used up", 2.0, quota=1, unit=Public("requests")), 429, "used up."),
        (QuotaExceeded("used up", 2.0, quota=1, unit=Public("tokens")), 456, "used up."),
        (EngineFailure("broken"), 500, "broken"),
        (Unavailable("loading"), 503, "loading"),
        (DeadlineExceeded("too slow"), 504, "too slow"),
    ],
)
def test_each_kind_of_error_has_its_status(error: ServiceError, status: int, message: str) -> None:
    answer = failure(error, Call(request_id="r1"))
    document = json.loads(answer.body)
    assert (answer.status, document["message"]) == (status, message)
    assert document["detail"].endswith(", request r1")
