"""Errors as Google's REST APIs return them."""

import json
from typing import Any

import pytest

from service.domain.call import Call
from service.domain.errors import (
    InvalidRequest,
    NotFound,
    Overloaded,
    Path,
    ServiceError,
    TooLate,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from service.faces.google.failures import failure_of_v2, failure_of_v3

TYPE = "type.googleapis.com/google.rpc"


def v3(error: ServiceError) -> Any:
    return json.loads(failure_of_v3(error, Call()).body)["error"]


def v2(error: ServiceError) -> Any:
    return json.loads(failure_of_v2(error, Call()).body)["error"]


@pytest.mark.parametrize(
    ("error", "code", "status", "reason"),
    [
        (InvalidRequest("wrong"), 400, "INVALID_ARGUMENT", "invalid"),
        (Unauthenticated("who"), 401, "UNAUTHENTICATED", "authError"),
        (NotFound("nowhere"), 404, "NOT_FOUND", "notFound"),
        (Overloaded("full", 1.5), 429, "RESOURCE_EXHAUSTED", "rateLimitExceeded"),
        (ServiceError("broken"), 500, "INTERNAL", "internalError"),
        (Unimplemented("not here"), 501, "UNIMPLEMENTED", "notImplemented"),
        (Unavailable("later"), 503, "UNAVAILABLE", "backendError"),
        (TooLate("late"), 504, "DEADLINE_EXCEEDED", "backendError"),
    ],
)
def test_each_error_has_googles_code_and_status(error: ServiceError, code: int, status: str, reason: str) -> None:
    assert failure_of_v3(error, Call()).status == failure_of_v2(error, Call()).status == code
    document = v3(error)
    assert (document["code"], document["status"], document["message"]) == (code, status, str(error))
    assert document["details"][-1] == {
        "@type": f"{TYPE}.ErrorInfo",
        "reason": error.reason.upper(),
        "domain": "dragoman",
    }
    errors = [{"message": str(error), "domain": "global", "reason": reason}]
    assert v2(error) == {**document, "errors": errors}


def test_details_say_where_and_what_and_when() -> None:
    wrong = InvalidRequest("{path} is wrong", Path("contents", 3))
    violation = {"field": "contents[3]", "description": "contents[3] is wrong."}
    assert v3(wrong)["details"][0] == {"@type": f"{TYPE}.BadRequest", "fieldViolations": [violation]}
    assert v2(wrong)["errors"][0]["location"] == "contents[3]"
    missing = v3(NotFound("no", "model", "m" * 1000))["details"][0]
    assert missing == {"@type": f"{TYPE}.ResourceInfo", "resourceType": "model", "resourceName": "m" * 255}
    assert v3(Overloaded("full", 1.5))["details"][0] == {"@type": f"{TYPE}.RetryInfo", "retryDelay": "1.500s"}
    assert v3(Overloaded("full", 0.0))["details"][0]["retryDelay"] == "0.001s"


def test_a_missing_key_is_asked_for() -> None:
    assert failure_of_v3(Unauthenticated("who"), Call()).headers["WWW-Authenticate"] == "Bearer"
    assert not failure_of_v3(InvalidRequest("wrong"), Call()).headers
