"""Which requests a page of another site may have sent to a port that asks for no key."""

import pytest

from service.domain.errors import Forbidden
from service.faces.http.same_site import PageRules, page_rules

HERE = {"host": "127.0.0.1:8080"}
RULES = PageRules(frozenset({"https://app.example"}), "translate.example")


@pytest.mark.parametrize("host", ["127.0.0.1:80", "[::1]:8080", "dragoman:80", "10.1.2.3", "Translate.example:80"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
def test_tools_and_own_pages_may_do_everything(host: str, method: str) -> None:
    RULES.check(method, {"host": host})
    RULES.check(method, {"host": host, "origin": f"http://{host}"})
    RULES.check(method, {"host": host, "origin": f"https://{host}", "sec-fetch-site": "same-origin"})
    RULES.check(method, {"host": host, "sec-fetch-site": "none"})


@pytest.mark.parametrize("host", ["evil.example:8080", "localhost.evil.example", "evil.", "a@b", "", "[::1"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
def test_a_name_of_somebody_else_is_refused_whoever_allows_it(host: str, method: str) -> None:
    for more in ({}, {"origin": f"http://{host}", "sec-fetch-site": "same-origin"}, {"origin": "https://app.example"}):
        with pytest.raises(Forbidden, match=r"^Host is "):
            RULES.check(method, {"host": host, **more})


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "garbage", "http://["])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_change_that_another_site_s_page_asks_for_is_refused(origin: str, method: str) -> None:
    for site in ({}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}):
        with pytest.raises(Forbidden, match=r"^Origin is .*; allowed are this server's own page, https://app.example"):
            RULES.check(method, {**HERE, "origin": origin, **site})
    RULES.check("GET", {**HERE, "origin": origin, "sec-fetch-site": "cross-site"})  # such as a link to the page


def test_what_a_browser_says_of_itself_counts() -> None:
    RULES.check("POST", {})  # no browser leaves Host out
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
