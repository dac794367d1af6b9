"""What each API says of an error: its status, and a sentence in the API's own words."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.rpc import status_pb2

from service.domain import errors
from service.domain.call import Call
from service.domain.errors import (
    InvalidRequest,
    NotFound,
    Overloaded,
    PairNotFound,
    Path,
    Public,
    QuotaExceeded,
    ServiceError,
    TooMany,
)
from service.faces.deepl.failures import failure as of_deepl
from service.faces.google.failures import failure_of_v2, failure_of_v3
from service.faces.grpc.status import status_of
from service.faces.http.application import HttpAnswer
from service.faces.kserve.http import failure as of_kserve
from service.faces.libretranslate.http import failure as of_libretranslate

GOOGLE = "type.googleapis.com/google.rpc"
USED_UP = QuotaExceeded("used up", 2.0, quota=1, unit=Public("token"))
WRONG_TEXT = InvalidRequest("{path} is wrong", Path("texts", 1))
PAIR = PairNotFound("{path} is not served", "target_language_code")

STATUSES: list[tuple[ServiceError, str, int, str, int, int]] = [
    (InvalidRequest("no"), "INVALID_ARGUMENT", 400, "invalid", 400, 400),
    (errors.TooLong("no"), "INVALID_ARGUMENT", 400, "invalid", 413, 400),
    (TooMany("no", Path("texts")), "INVALID_ARGUMENT", 400, "invalid", 413, 400),
    (TooMany("no"), "INVALID_ARGUMENT", 400, "invalid", 400, 400),
    (NotFound("no"), "NOT_FOUND", 404, "notFound", 404, 400),
    (NotFound("no", "document"), "NOT_FOUND", 404, "notFound", 404, 404),
    (PAIR, "NOT_FOUND", 404, "notFound", 400, 400),
    (errors.Unimplemented("no"), "UNIMPLEMENTED", 501, "notImplemented", 400, 403),
    (errors.NotPossible("no"), "FAILED_PRECONDITION", 400, "invalid", 400, 400),
    (Overloaded("no", 1.5), "RESOURCE_EXHAUSTED", 429, "rateLimitExceeded", 429, 429),
    (QuotaExceeded("no", 1.5), "RESOURCE_EXHAUSTED", 429, "rateLimitExceeded", 429, 429),
    (USED_UP, "RESOURCE_EXHAUSTED", 429, "rateLimitExceeded", 456, 429),
    (errors.MemoryFull("no", 1.5), "RESOURCE_EXHAUSTED", 429, "rateLimitExceeded", 429, 429),
    (errors.MessageTooSlow("no", 1.5), "RESOURCE_EXHAUSTED", 429, "rateLimitExceeded", 429, 429),
    (errors.Unauthenticated("no"), "UNAUTHENTICATED", 401, "authError", 403, 403),
    (errors.Forbidden("no"), "PERMISSION_DENIED", 403, "forbidden", 403, 403),
    (errors.Unavailable("no"), "UNAVAILABLE", 503, "backendError", 503, 503),
    (errors.DeadlineExceeded("no"), "DEADLINE_EXCEEDED", 504, "backendError", 504, 504),
    (errors.TooLate("no"), "DEADLINE_EXCEEDED", 504, "backendError", 504, 504),
    (errors.Cancelled("no"), "CANCELLED", 500, "internalError", 500, 500),
    (errors.EngineFailure("no"), "INTERNAL", 500, "internalError", 500, 500),
    (ServiceError("no"), "INTERNAL", 500, "internalError", 500, 500),
]


def document(answer: HttpAnswer) -> Any:
    return json.loads(answer.body)


def v3(error: ServiceError) -> Any:
    return document(failure_of_v3(error, Call()))["error"]


@pytest.mark.parametrize(("error", "code", "http", "reason", "deepl", "libretranslate"), STATUSES)
def test_each_error_has_its_status(
    error: ServiceError, code: str, http: int, reason: str, deepl: int, libretranslate: int
) -> None:
    status = status_of(error)
    assert (status.code.name, status.message) == (code, str(error))
    for failure in (failure_of_v2, failure_of_v3, of_kserve):
        assert failure(error, Call()).status == http
    assert of_deepl(error, Call()).status == deepl
    assert of_libretranslate(error, Call(num_texts=2)).status == libretranslate
    of_google = v3(error)
    assert (of_google["code"], of_google["status"], of_google["message"]) == (http, code, str(error))
    info = {"@type": f"{GOOGLE}.ErrorInfo", "reason": error.reason.upper(), "domain": "dragoman"}
    assert of_google["details"][-1] == MessageToDict(details_of(status).details[-1]) == info
    of_v2 = [{"message": str(error), "domain": "global", "reason": reason}]
    where = {"location": error.field, "locationType": "parameter"} if getattr(error, "field", "") else {}
    assert document(failure_of_v2(error, Call()))["error"]["errors"][0].items() >= (of_v2[0] | where).items()
    assert document(of_kserve(error, Call())) == {"error": str(error)}


def test_every_error_is_in_the_table() -> None:
    pending, found = [ServiceError], set[type[ServiceError]]()
    while pending:
        kind = pending.pop()
        found.add(kind)
        pending += [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]  # HTTP has more
    assert {type(error) for error, *_ in STATUSES} == found


@pytest.mark.parametrize(
    ("error", "failure", "message"),
    [
        (WRONG_TEXT, of_deepl, "text[1] is wrong."),
        (InvalidRequest("no", advice="give source_language_code"), of_deepl, "no; give source_lang."),
        (PAIR, of_deepl, "Value for 'target_lang' not supported: target_lang is not served."),
        (TooMany("{path} has many", Path("texts")), of_deepl, "text has many."),
        (Overloaded("the queue is full", 2.0), of_deepl, "the queue is full"),
        (WRONG_TEXT, of_libretranslate, "q[1] is wrong."),
        (PAIR, of_libretranslate, "target is not served."),
        (InvalidRequest("no", advice="give source_language_code"), of_libretranslate, "no; give source."),
        (InvalidRequest("{path} is 9", Path("options", "num_hypotheses")), of_libretranslate, "alternatives is 9."),
        (Overloaded("the queue is full", 2.0), of_libretranslate, "Slowdown: the queue is full"),
        (USED_UP, of_libretranslate, "Slowdown: used up."),
    ],
)
def test_the_sentence_is_in_the_words_of_the_api(
    error: ServiceError, failure: Callable[[ServiceError, Call], HttpAnswer], message: str
) -> None:
    found = document(failure(error, Call(request_id="r1", num_texts=2)))
    assert found.get("error", found.get("message")) == message
    assert found.get("detail", ", request r1").endswith(", request r1")


def test_a_text_that_came_alone_has_no_index_for_libretranslate() -> None:
    found = of_libretranslate(InvalidRequest("{path} is wrong", Path("texts", 0)), Call(num_texts=1))
    assert document(found)["error"].startswith("q is wrong")


INFO = {"@type": f"{GOOGLE}.ErrorInfo", "reason": "INVALID", "domain": "dragoman"}
DETAILS = [
    (
        InvalidRequest("{path} is wrong", Path("contents", 3)),
        {
            "@type": f"{GOOGLE}.BadRequest",
            "fieldViolations": [{"field": "contents[3]", "description": "contents[3] is wrong."}],
        },
    ),
    (InvalidRequest("no field"), INFO),
    (
        NotFound("no", "model", "m" * 1000),
        {"@type": f"{GOOGLE}.ResourceInfo", "resourceType": "model", "resourceName": "m" * 255},
    ),
    (Overloaded("full", 1.5), {"@type": f"{GOOGLE}.RetryInfo", "retryDelay": "1.500s"}),
    (Overloaded("full", 0.0), {"@type": f"{GOOGLE}.RetryInfo", "retryDelay": "0.001s"}),
]


@pytest.mark.parametrize(("error", "detail"), DETAILS)
def test_details_say_where_and_what_and_when(error: ServiceError, detail: Any) -> None:
    status = details_of(status_of(error))
    assert v3(error)["details"][0] == MessageToDict(status.details[0]) == detail
    assert (status.code, status.message) == (status_of(error).code.value[0], str(error))


def test_a_missing_key_is_asked_for() -> None:
    for failure in (failure_of_v3, of_kserve):
        assert failure(errors.Unauthenticated("who"), Call()).headers["WWW-Authenticate"] == "Bearer"
        assert not failure(InvalidRequest("wrong"), Call()).headers


def details_of(status: Any) -> Any:
    trailers = dict(status.trailing_metadata)
    return status_pb2.Status.FromString(trailers["grpc-status-details-bin"])


def test_equal_refusals_are_made_once_and_all_others_for_themselves() -> None:
    first = status_of(errors.Overloaded("full", 1.5))
    assert status_of(errors.Overloaded("full", 1.5)) is first
    others = [errors.Overloaded("Full", 1.5), errors.Overloaded("full", 1.6), errors.QuotaExceeded("full", 1.5)]
    assert len({status_of(each) for each in (*others, errors.Overloaded("full", 1.5))}) == 4


@pytest.mark.parametrize(("seconds", "milliseconds"), [(1.5, "1500"), (0.0, "1"), (0.0123, "12"), (60.0, "60000")])
def test_an_overloaded_server_says_when_to_come_back(seconds: float, milliseconds: str) -> None:
    assert ("grpc-retry-pushback-ms", milliseconds) in status_of(Overloaded("full", seconds)).trailing_metadata
