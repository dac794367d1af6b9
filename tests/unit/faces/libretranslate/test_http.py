"""Errors in the words of LibreTranslate's API."""

import json

import pytest

from service.domain.call import Call
from service.domain.errors import (
    DeadlineExceeded,
    EngineFailure,
    InvalidRequest,
    Overloaded,
    PairNotFound,
    Path,
    QuotaExceeded,
    ServiceError,
    TooLate,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from service.faces.libretranslate.http import failure


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (InvalidRequest("{path} is wrong", Path("texts", 1)), 400, "q[1] is wrong"),
        (PairNotFound("{path} is not served", "target_language_code"), 400, "target is not served"),
        (Unauthenticated("the API key is unknown"), 403, "the API key is unknown"),
        (Unimplemented("suggestions are disabled"), 403, "suggestions are disabled"),
        (Overloaded("the queue is full", 2.0), 429, "Slowdown: the queue is full"),
        (QuotaExceeded("key alice has used its quota", 2.0), 429, "Slowdown: key alice has used its quota"),
        (Unavailable("loading"), 503, "loading"),
        (DeadlineExceeded("too slow"), 504, "too slow"),
        (TooLate("too slow"), 504, "too slow"),
        (EngineFailure("broken"), 500, "broken"),
    ],
)
def test_each_kind_of_error_has_its_status(error: ServiceError, status: int, message: str) -> None:
    answer = failure(error, Call(num_texts=2))
    assert answer.status == status
    [(name, said)] = json.loads(answer.body).items()
    assert (name, said.removesuffix(".")) == ("error", message)


def test_a_text_that_came_alone_has_no_index() -> None:
    answer = failure(InvalidRequest("{path} is wrong", Path("texts", 0)), Call(num_texts=1))
    assert json.loads(answer.body)["error"].startswith("q is wrong")
