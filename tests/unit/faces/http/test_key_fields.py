"""Where in a request the key of its caller is found, without reading it."""

import json
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.faces.http.application import HttpRequest
from service.faces.http.forms import MAX_FIELDS
from service.faces.http.key_fields import KeyField

KEY = KeyField("auth_key")
FORM, JSON, PARTS = "application/x-www-form-urlencoded", "application/json", "multipart/form-data; boundary=b"
KEYS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)
PIECES = [*'auth_key=&%"\\: \r\n-b', "auth_key=", '"auth_key":"x"', "é"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


def posted(kind: str, body: bytes, query: str = "") -> HttpRequest:
    return HttpRequest("POST", "/", {"content-type": kind}, body, query)


def part(name: str, content: str, *lines: str, disposition: str = '; name="{}"') -> bytes:
    head = "\r\n".join((f"--b\r\nContent-Disposition: form-data{disposition.format(name)}", *lines))
    return f"{head}\r\n\r\n{content}\r\n".encode()


@given(KEYS, TEXTS, TEXTS)
def test_it_is_found_whatever_is_around_it(key: str, before: str, after: str) -> None:
    fields = f"text={quote_plus(before)}&auth_key={quote_plus(key)}&x={quote_plus(after)}"
    assert KEY.find(posted(FORM, fields.encode())) == key
    assert KEY.find(posted(FORM, b"", fields)) == key
    for indent in (None, 1):
        document = json.dumps({"text": before, "auth_key": key, "x": [after]}, indent=indent).encode()
        assert KEY.find(posted(JSON, document)) == key
        assert KEY.find(posted(FORM, document)) == key  # as `curl -d` sends it
    parts = part("text", quote_plus(before)) + part("auth_key", key.strip() or "k") + part("x", after) + b"--b--"
    assert KEY.find(posted(PARTS, parts)) == (key.strip() or "k")


@pytest.mark.parametrize(
    "sent",
    [
        part("auth_key", "k", "Content-Type: text/plain; charset=utf-8"),
        part("auth_key", "k", disposition="; name={}"),
        part("auth_key", "k", "Content-Length: 1", "Content-Type: text/plain"),
        part("auth_key", "k").replace(b"--b\r\n", b"--b\r\nContent-Type: text/plain\r\n"),
    ],
)
def test_clients_write_parts_in_several_ways(sent: bytes) -> None:
    assert KEY.find(posted(PARTS, sent + b"--b--")) == "k"


@pytest.mark.parametrize(
    "request_",
    [
        posted(FORM, b"text=a"),
        posted(FORM, b"text=auth_key"),
        posted(FORM, b"my_auth_key=k&auth_key="),
        posted(FORM, b"auth_keys=k"),
        posted(FORM, b"auth_key=" + b"k" * 2000),
        posted(JSON, b'{"auth_key": 1}'),
        posted(JSON, b'{"auth_key": null}'),
        posted(JSON, b'{"text": "auth_key", "x": ": k"}'),
        posted(JSON, b'{"text": "say \\"auth_key\\": \\"k\\""}'),
        posted(JSON, b'{"auth_key": "\\x"}'),
        posted(JSON, b"{"),
        posted(PARTS, part("file", "k", disposition='; name="file"; filename="auth_key"') + b"--b--"),
        posted(PARTS, part("auth_key", "k")[:-3]),
        posted(PARTS, b""),
        posted("", b""),
    ],
)
def test_most_requests_have_none(request_: HttpRequest) -> None:
    assert KEY.find(request_) == ""


def test_an_api_may_have_its_keys_in_forms_only_and_with_prefixes() -> None:
    key = KeyField("key", "$", in_json=False)
    assert key.find(posted(JSON, b'{"key": "k"}')) == ""
    assert key.find(posted(FORM, b"q=key&$key=k")) == "k"
    assert key.find(posted(FORM, b"q=$key&a$key=k&?key=k")) == ""


def test_too_many_fields_are_not_searched() -> None:
    for request in (posted(FORM, b"auth_key=a&" * MAX_FIELDS), posted(FORM, b"", "&" * MAX_FIELDS)):
        with pytest.raises(InvalidRequest, match="too many fields"):
            KEY.find(request)
