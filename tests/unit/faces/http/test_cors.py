"""Which pages may call, and what they may read."""

from http import HTTPStatus

import pytest

from service.calls.pipeline import REQUEST_ID_KEY
from service.domain.call import TIMING_KEY
from service.faces.google.methods import FINISH_REASONS_KEY
from service.faces.http.cors import Cors
from service.faces.http.uploads import NOTES_HEADER, REPORT_HEADER
from service.faces.kserve.http_messages import JSON_LENGTH

PAGE = "https://example.org"
ASKS = {"origin": PAGE, "access-control-request-method": "POST"}


def test_by_default_there_is_no_header_and_no_answer_for_any_page() -> None:
    assert Cors().headers(PAGE) == Cors().headers("") == {}
    assert Cors().preflight("OPTIONS", ASKS) is None


def test_any_page_may_call_where_all_may() -> None:
    cors = Cors(["*"])
    for origin in ("", PAGE, "null"):
        headers = cors.headers(origin)
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert "Vary" not in headers
    answer = cors.preflight("OPTIONS", ASKS)
    assert answer is not None
    assert answer.status == HTTPStatus.OK


def test_only_listed_pages_may_call() -> None:
    cors = Cors([PAGE])
    assert cors.headers(PAGE)["Access-Control-Allow-Origin"] == PAGE
    for other in ("", "https://example.com", "https://example.org.example.com", "http://example.org", "null"):
        assert cors.headers(other) == {"Vary": "Origin"}  # a cache must not take it for a listed page
        assert cors.preflight("OPTIONS", {**ASKS, "origin": other}) is None
    assert cors.preflight("OPTIONS", {"origin": PAGE}) is None  # it does not ask for a method
    assert cors.preflight("POST", ASKS) is None


@pytest.mark.parametrize("origins", [["*"], [PAGE]], ids=["any", "listed"])
def test_pages_may_read_all_that_the_apis_tell_in_headers(origins: list[str]) -> None:
    exposed = Cors(origins).headers(PAGE)["Access-Control-Expose-Headers"].split(", ")
    told = (REQUEST_ID_KEY, TIMING_KEY, FINISH_REASONS_KEY, NOTES_HEADER, REPORT_HEADER, JSON_LENGTH)
    others = ("Retry-After", "WWW-Authenticate", "Content-Disposition")
    assert sorted(exposed) == sorted(each.lower() for each in (*told, *others))
