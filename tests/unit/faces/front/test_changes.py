"""What workers answered to a change, as one answer: partial success is said plainly."""

import json
from http import HTTPStatus
from typing import Any

import pytest

from service.faces.admin.answers import failure, in_json
from service.faces.front.changes import Outcome, change_of
from service.faces.front.worker import NoAnswer
from service.faces.http.application import HttpAnswer

CHANGED, UNCHANGED, FAILED = (in_json({"outcome": outcome}) for outcome in ("changed", "unchanged", "failed"))
DONE = in_json({})
ENDED = NoAnswer("is not running", was_sent=False)
LATE = NoAnswer("did not answer within 1 s", was_sent=True, is_late=True)


def told(*outcomes: Outcome) -> tuple[int, Any]:
    answer = change_of(dict(enumerate(outcomes)))
    return answer.status, json.loads(answer.body)


@pytest.mark.parametrize(
    ("outcomes", "document"),
    [
        ((UNCHANGED, UNCHANGED), {"outcome": "unchanged"}),
        ((CHANGED, CHANGED), {"outcome": "changed"}),
        ((UNCHANGED, CHANGED), {"outcome": "changed", "workers": {"0": "unchanged", "1": "changed"}}),
        ((CHANGED, FAILED), {"outcome": "failed", "workers": {"0": "changed", "1": "failed"}}),
        ((DONE, DONE), {}),
    ],
)
def test_what_all_have_done_is_one_outcome(outcomes: tuple[HttpAnswer, ...], document: Any) -> None:
    assert told(*outcomes) == (200, document)


@pytest.mark.parametrize(
    ("outcomes", "code", "name", "message"),
    [
        (
            (DONE, ENDED, DONE),
            503,
            "UNAVAILABLE",
            "worker-1: it is not running. The change was made in worker-0, worker-2.",
        ),
        (
            (ENDED, LATE),
            503,
            "UNAVAILABLE",
            "worker-0: it is not running. The change also failed in worker-1; it was made in no worker.",
        ),
        (
            (DONE, LATE),
            504,
            "DEADLINE_EXCEEDED",
            "worker-1: it did not answer within 1 s. The change was made in worker-0.",
        ),
        (
            (failure("NOT_FOUND", "'x' is not here."), DONE),
            404,
            "NOT_FOUND",
            "worker-0: 'x' is not here. The change was made in worker-1.",
        ),
    ],
)
def test_the_first_error_names_its_worker(outcomes: tuple[Outcome, ...], code: int, name: str, message: str) -> None:
    assert told(*outcomes) == (code, {"error": {"code": name, "message": message}})


def test_a_hint_to_come_again_is_passed_back() -> None:
    full = HttpAnswer(
        HTTPStatus.TOO_MANY_REQUESTS, "", b'{"error": {"code": "a", "message": "b."}}', {"retry-after": "3"}
    )
    assert change_of({0: full}).headers["retry-after"] == "3"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"error": 1}', b"\xff"])
def test_an_error_in_no_known_form_is_one_all_the_same(body: bytes) -> None:
    broken = HttpAnswer(HTTPStatus.BAD_GATEWAY, "text/plain", body)
    code, document = told(broken)
    assert (code, document["error"]["code"]) == (500, "INTERNAL")
    assert document["error"]["message"].startswith("worker-0: it answered with HTTP status 502.")
