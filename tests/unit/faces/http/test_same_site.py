"""Pages of other sites: which requests of theirs callers' and operators' ports take, and which may call (CORS)."""

from http import HTTPStatus

import pytest

from service.calls.pipeline import REQUEST_ID_KEY
from service.domain.call import TIMING_KEY
from service.domain.errors import Forbidden
from service.faces.admin.server import refusal
from service.faces.google.methods import FINISH_REASONS_KEY
from service.faces.http.same_site import Cors, PageRules, page_rules
from service.faces.http.uploads import NOTES_HEADER, REPORT_HEADER
from service.faces.kserve.http_messages import JSON_LENGTH

HERE = {"host": "127.0.0.1:8080"}
RULES = PageRules(frozenset({"https://app.example"}), "translate.example")


IN_JSON = {"content-type": "Application/JSON; charset=utf-8"}


@pytest.mark.parametrize(
    "host", ["127.0.0.1:80", "LOCALHOST:1", "[::1]:8080", "dragoman:80", "10.1.2.3", "Translate.example:80"]
)
def test_tools_and_own_pages_may_do_everything(host: str) -> None:
    for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"):
        RULES.check(method, {"host": host})
        RULES.check(method, {"host": host, "origin": f"http://{host}"})
        RULES.check(method, {"host": host, "origin": f"https://{host}", "sec-fetch-site": "same-origin"})
        RULES.check(method, {"host": host, "sec-fetch-site": "none"})
    assert refusal("GET", {"host": host}, "translate.example") == ""
    for origin in ({}, {"origin": f"http://{host}"}):
        assert refusal("POST", {"host": host, **IN_JSON, **origin}, "translate.example") == ""


@pytest.mark.parametrize(
    "host", ["evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "evil.", "a@b", "", "[::1"]
)
def test_a_name_of_somebody_else_is_refused_whoever_allows_it(host: str) -> None:
    for method in ("GET", "HEAD", "OPTIONS", "POST"):
        for more in (
            {},
            {"origin": f"http://{host}", "sec-fetch-site": "same-origin"},
            {"origin": "https://app.example"},
        ):
            with pytest.raises(Forbidden, match=r"^Host is "):
                RULES.check(method, {"host": host, **more})
        for own_host in ("127.0.0.1", ""):
            assert "Host is" in refusal(method, {"host": host, **IN_JSON}, own_host)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1", "garbage", "http://["]
)
def test_a_change_that_another_site_s_page_asks_for_is_refused(origin: str) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for site in ({}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}):
            with pytest.raises(Forbidden, match=r"^Origin is .*; allowed: this server's own page, https://app"):
                RULES.check(method, {**HERE, "origin": origin, **site})
    RULES.check("GET", {**HERE, "origin": origin, "sec-fetch-site": "cross-site"})  # such as a link to the page
    assert "Origin is" in refusal("POST", {**HERE, **IN_JSON, "origin": origin}, "127.0.0.1")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_operators_send_no_forms(content_type: str) -> None:
    assert "expected application/json" in refusal("POST", {**HERE, "content-type": content_type}, "127.0.0.1")


def test_what_a_browser_says_of_itself_counts() -> None:
    RULES.check("POST", {})  # no browser leaves Host out
    assert refusal("GET", {}, "127.0.0.1") == ""
    with pytest.raises(Forbidden):
        RULES.check("POST", {**HERE, "sec-fetch-site": "cross-site"})
    RULES.check("POST", {**HERE, "origin": "https://app.example", "sec-fetch-site": "cross-site"})  # an allowed page
    own = {"origin": "https://translate.example.org", "sec-fetch-site": "same-origin"}
    RULES.check("POST", {**HERE, **own})  # behind a proxy that changes Host


def test_a_server_for_anyone_has_any_name_but_no_foreign_pages() -> None:
    rules = page_rules((), "0.0.0.0", asks_for_keys=False, takes_anyone=True)
    assert rules is not None
    rules.check("POST", {"host": "translate.corp", "origin": "http://translate.corp"})
    with pytest.raises(Forbidden):
        rules.check("POST", {"host": "translate.corp", "origin": "http://evil.example"})


def test_where_any_page_may_call_or_needs_a_key_there_is_nothing_to_check() -> None:
    assert page_rules((), "127.0.0.1", asks_for_keys=True, takes_anyone=False) is None
    rules = page_rules(("*",), "127.0.0.1", asks_for_keys=False, takes_anyone=False)
    assert rules is not None
    rules.check("POST", {"host": "evil.example", "origin": "http://evil.example"})


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
    answer = cors.preflight("OPTIONS", {**ASKS, "access-control-request-headers": "content-type,x-api-key"})
    assert answer is not None
    assert answer.status == HTTPStatus.OK
    assert answer.headers["Access-Control-Allow-Headers"] == "content-type,x-api-key"


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
