"""Requests of Cloud Translation v3 from paths, queries and bodies."""

import pytest

from service.domain.errors import InvalidRequest
from service.faces.google.http import message_from
from service.faces.google.rules import RULES
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from service.faces.http.application import HttpRequest

PARTS = {"part0": "p", "part1": "l"}
PARENT = "projects/p/locations/l"
TRANSLATE = next(rule for rule in RULES if rule.name == "TranslateText")
GLOSSARIES = next(rule for rule in RULES if rule.name == "ListGlossaries")


def posted(body: bytes, query: str = "", content_type: str = "application/json; charset=utf-8") -> HttpRequest:
    return HttpRequest("POST", "/", {"content-type": content_type}, body, query, PARTS)


def got(query: str) -> HttpRequest:
    return HttpRequest("GET", "/", {}, query=query, parts=PARTS)


def test_a_body_and_the_parent_in_the_path_are_the_request() -> None:
    message = message_from(TRANSLATE, posted(b'{"contents": ["a"]}', "$alt=json;enum-encoding%3Dint&key=k"))
    assert message == pb.TranslateTextRequest(parent=PARENT, contents=["a"])
    assert message_from(TRANSLATE, posted(f'{{"parent": "{PARENT}"}}'.encode())) == pb.TranslateTextRequest(
        parent=PARENT
    )


def test_a_query_and_the_parent_in_the_path_are_the_request() -> None:
    expected = pb.ListGlossariesRequest(parent=PARENT, page_size=2, page_token="3", filter="src=en AND tgt=de")
    assert message_from(GLOSSARIES, got("pageSize=2&pageToken=3&filter=src%3Den+AND+tgt%3Dde&alt=json")) == expected
    assert message_from(GLOSSARIES, got("page_size=2&page_token=3&filter=src%3Den%20AND%20tgt%3Dde")) == expected
    assert message_from(GLOSSARIES, got("")) == pb.ListGlossariesRequest(parent=PARENT)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (posted(b'{"contents": ["a"]}', "mimeType=text/plain"), "mimeType"),
        (posted(b'{"parent": "projects/other"}'), "parent"),
        (posted(b'"a"', content_type="text/plain"), ""),
        (posted(b'{"contents": ["a"]}', "alt=media"), "alt"),
        (posted(b'{"tone": "a"}'), "tone"),
        (posted(b""), ""),
    ],
)
def test_a_wrong_post_is_refused(request_: HttpRequest, field: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        message_from(TRANSLATE, request_)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("tone=a", "tone"),
        ("pageSize=1&pageSize=2", "pageSize"),
        ("pageSize=many", ""),
        ("pageSize=99999999999", ""),
        ("parent=projects/other", "parent"),
        ("filter=%FF", ""),
    ],
)
def test_a_wrong_query_is_refused(query: str, field: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        message_from(GLOSSARIES, got(query))
    assert raised.value.field == field
