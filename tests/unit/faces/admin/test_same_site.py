"""Which requests other web pages could have made, and which are an operator's."""

import pytest

from service.faces.admin.server import refusal

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "host", ["127.0.0.1:9465", "localhost", "LOCALHOST:1", "[::1]:9465", "10.1.2.3:80", "status.example:9465"]
)
def test_addresses_localhost_and_the_configured_host_are_ours(host: str) -> None:
    assert refusal("GET", {"host": host}, "Status.example") == ""
    assert refusal("POST", JSON | {"host": host, "origin": f"http://{host}"}, "status.example") == ""


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9465", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1", "a@b"]
)
def test_a_name_of_somebody_else_is_refused(host: str) -> None:
    assert "Host is" in refusal("GET", {"host": host}, "127.0.0.1")
    assert "Host is" in refusal("POST", JSON | {"host": host}, "127.0.0.1")


def test_an_empty_host_is_refused_even_if_nothing_is_configured() -> None:
    assert "Host is" in refusal("GET", {"host": ""}, "127.0.0.1")
    assert "Host is" in refusal("GET", {"host": ""}, "")
    assert refusal("GET", {}, "127.0.0.1") == ""  # no browser leaves it out


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1", "garbage", "http://[", "http://a\u2100b"],
)
def test_a_change_that_another_page_asks_for_is_refused(origin: str) -> None:
    assert "Origin is" in refusal("POST", JSON | {"host": "127.0.0.1:9465", "origin": origin}, "127.0.0.1")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_is_refused(content_type: str) -> None:
    headers = {"host": "127.0.0.1:9465", "content-type": content_type}
    assert "expected application/json" in refusal("POST", headers, "127.0.0.1")


def test_json_may_name_its_charset_and_tools_send_no_origin() -> None:
    headers = {"host": "127.0.0.1:9465", "content-type": "Application/JSON; charset=utf-8"}
    assert refusal("POST", headers, "127.0.0.1") == ""
