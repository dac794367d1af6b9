"""What each API says of an error: its status, and a sentence in the API's own words."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.rpc import error_details_pb2, status_pb2

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
USED_UP = QuotaExceeded("used up", 2.0, quota=1, unit=Public("tokens"))
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
    assert status_of(error).code.name == code
    for failure in (failure_of_v2, failure_of_v3, of_kserve):
        assert failure(error, Call()).status == http
    assert of_deepl(error, Call()).status == deepl
    assert of_libretranslate(error, Call(num_texts=2)).status == libretranslate
    of_google = v3(error)
    assert (of_google["code"], of_google["status"], of_google["message"]) == (http, code, str(error))
    info = {"@type": f"{GOOGLE}.ErrorInfo", "reason": error.reason.upper(), "domain": "dragoman"}
    assert of_google["details"][-1] == info
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


def test_googles_details_say_where_and_what_and_when() -> None:
    wrong = InvalidRequest("{path} is wrong", Path("contents", 3))
    violation = {"field": "contents[3]", "description": "contents[3] is wrong."}
    assert v3(wrong)["details"][0] == {"@type": f"{GOOGLE}.BadRequest", "fieldViolations": [violation]}
    assert document(failure_of_v2(wrong, Call()))["error"]["errors"][0]["location"] == "contents[3]"
    missing = v3(NotFound("no", "model", "m" * 1000))["details"][0]
    assert missing == {"@type": f"{GOOGLE}.ResourceInfo", "resourceType": "model", "resourceName": "m" * 255}
    assert v3(Overloaded("full", 1.5))["details"][0] == {"@type": f"{GOOGLE}.RetryInfo", "retryDelay": "1.500s"}
    assert v3(Overloaded("full", 0.0))["details"][0]["retryDelay"] == "0.001s"


def test_a_missing_key_is_asked_for() -> None:
    for failure in (failure_of_v3, of_kserve):
        assert failure(errors.Unauthenticated("who"), Call()).headers["WWW-Authenticate"] == "Bearer"
        assert not failure(InvalidRequest("wrong"), Call()).headers


@pytest.mark.parametrize("error", [error for error, *_ in STATUSES])
def test_every_error_keeps_its_message_and_has_a_reason_for_programs(error: errors.ServiceError) -> None:
    status, info = status_of(error), error_details_pb2.ErrorInfo()
    assert status.message == str(error)
    assert details_of(status).details[-1].Unpack(info)
    assert (info.reason, info.domain) == (error.reason.upper(), "dragoman")


def details_of(status: Any) -> Any:
    trailers = dict(status.trailing_metadata)
    return status_pb2.Status.FromString(trailers["grpc-status-details-bin"])


def test_an_invalid_request_names_its_field() -> None:
    status = status_of(errors.TooLong("texts[3] is too long", "texts[3]"))
    message = details_of(status)
    assert (message.code, message.message) == (3, "texts[3] is too long")
    bad_request = error_details_pb2.BadRequest()
    assert message.details[0].Unpack(bad_request)
    assert bad_request.field_violations[0].field == "texts[3]"
    (only,) = details_of(status_of(errors.InvalidRequest("no field"))).details
    assert not only.Is(error_details_pb2.BadRequest.DESCRIPTOR)


def test_what_is_not_found_is_named_in_short() -> None:
    resource = error_details_pb2.ResourceInfo()
    assert details_of(status_of(errors.NotFound("no", "model", "x" * 10_000))).details[0].Unpack(resource)
    assert (resource.resource_type, resource.resource_name) == ("model", "x" * 255)


def test_equal_refusals_are_made_once_and_all_others_for_themselves() -> None:
    first = status_of(errors.Overloaded("full", 1.5))
    assert status_of(errors.Overloaded("full", 1.5)) is first
    others = [errors.Overloaded("Full", 1.5), errors.Overloaded("full", 1.6), errors.QuotaExceeded("full", 1.5)]
    assert len({status_of(each) for each in (*others, errors.Overloaded("full", 1.5))}) == 4


@pytest.mark.parametrize(("seconds", "milliseconds"), [(1.5, 1500), (0.0, 1), (0.0123, 12), (60.0, 60_000)])
def test_an_overloaded_server_says_when_to_come_back(seconds: float, milliseconds: int) -> None:
    status = status_of(errors.Overloaded("full", seconds))
    retry_info = error_details_pb2.RetryInfo()
    assert details_of(status).details[0].Unpack(retry_info)
    assert retry_info.retry_delay.ToMilliseconds() == milliseconds
    assert dict(status.trailing_metadata)["grpc-retry-pushback-ms"] == str(milliseconds)
