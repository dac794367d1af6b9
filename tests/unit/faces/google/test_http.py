"""Cloud Translation over HTTP: v3's paths, queries and bodies as requests, v2's parameters, and those of both."""

from typing import cast

import pytest

from service.domain.errors import InvalidRequest, Unimplemented
from service.faces.google import v2
from service.faces.google.http import Google, message_from
from service.faces.google.methods import REQUESTS
from service.faces.google.parameters import own_fields
from service.faces.google.rules import RULES, UNSUPPORTED_RULES, Rule
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from service.faces.http.application import HttpRequest
from service.faces.http.routes import Routes
from service.translation.translator import Translator

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


def test_every_method_has_a_rule() -> None:
    service = pb.DESCRIPTOR.services_by_name["TranslationService"]
    assert {rule.name for rule in RULES} == set(REQUESTS) == {method.name for method in service.methods}


def test_requests_are_those_of_the_service() -> None:
    for method in pb.DESCRIPTOR.services_by_name["TranslationService"].methods:
        assert REQUESTS[method.name].DESCRIPTOR is method.input_type


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.template)
def test_the_field_in_a_path_is_a_text_of_the_request(rule: Rule) -> None:
    field, _ = rule.bound({f"part{number}": "a" for number in range(4)})
    assert getattr(REQUESTS[rule.name](), field) == ""


def test_a_path_has_a_part_for_each_star() -> None:
    rule = Rule("GET", "/v3/{name=projects/*/locations/*/glossaries/*}", "GetGlossary")
    assert rule.path == "/v3/projects/{part0}/locations/{part1}/glossaries/{part2}"
    parts = {"part0": "p", "part1": "l", "part2": "{part1} %"}
    assert rule.bound(parts) == ("name", "projects/p/locations/l/glossaries/{part1} %")


def test_a_path_goes_on_after_its_field() -> None:
    rule = Rule("POST", "/v3/{parent=projects/*}:translateText", "TranslateText")
    assert rule.path == "/v3/projects/{part0}:translateText"
    assert rule.bound({"part0": "p"}) == ("parent", "projects/p")
    assert rule.has_body
    assert not Rule("GET", rule.template, rule.name).has_body


ROUTES = Routes(Google(cast(Translator, None), 60.0).routes())


@pytest.mark.parametrize("rule", UNSUPPORTED_RULES, ids=lambda rule: f"{rule.method} {rule.template}")
async def test_every_other_method_says_what_there_is_instead(rule: Rule) -> None:
    path = rule.path.format_map({f"part{number}": f"x{number}" for number in range(5)})
    found = ROUTES.find(path)
    assert found is not None
    with pytest.raises(Unimplemented, match=f"^{rule.name} is not supported by this server; "):
        await found.by_method[rule.method].handle(HttpRequest(rule.method, path, {}, parts=found.parts))


def test_they_are_no_fields_of_a_request() -> None:
    general = [("key", "k"), ("$.xgafv", "2"), ("prettyPrint", "false"), ("$prettyPrint", "0"), ("quotaUser", "u")]
    general += [("alt", "json"), ("$alt", "json;enum-encoding=int")]
    assert own_fields([*general, ("q", "a"), ("q", "b")]) == [("q", "a"), ("q", "b")]


@pytest.mark.parametrize("name", ["alt", "$alt"])
@pytest.mark.parametrize("value", ["", "media", "proto", "jsonp"])
def test_answers_are_json_only(name: str, value: str) -> None:
    with pytest.raises(InvalidRequest, match="allowed: json") as raised:
        own_fields([(name, value)])
    assert raised.value.field == "alt"


@pytest.mark.parametrize(
    ("request_", "field", "word"),
    [
        (posted(b'{"target": "de"}'), "q", "missing"),
        (posted(b'{"q": ["a", 1], "target": "de"}'), "q[1]", "a string"),
        (posted(b'{"q": null, "target": "de"}'), "q", "a list"),
        (posted(b'{"q": "a", "target": "de", "format": "rtf"}'), "format", "'html' or 'text'"),
        (posted(b'{"q": "a", "target": "de", "tone": 1}'), "tone", "unknown"),
        (posted(b'{"q": "a", "target": "de"}', query="target=fr"), "target", "twice"),
        (got("q=a&target=de&target=fr"), "target", "twice"),
        (got("q=a&target=de&alt=jsonp"), "alt", "json"),
        (got("q=%FF&target=de"), "", "UTF-8"),
        (posted(b"q=%FF&target=de", content_type="application/x-www-form-urlencoded"), "", "UTF-8"),
        (posted(b"<q>a</q>", content_type="text/xml"), "", "application/json"),
    ],
)
def test_what_is_wrong_with_v2_s_parameters_is_named(request_: HttpRequest, field: str, word: str) -> None:
    with pytest.raises(InvalidRequest, match=word) as raised:
        v2.parameters_in(request_, v2.TranslateParameters)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (None, ""),
        ("nmt", ""),
        ("base", ""),
        ("tiny", "tiny"),
        ("projects/p/locations/l/models/tiny", "tiny"),
        ("projects/p/models/general/nmt", ""),
    ],
)
def test_models_of_v2(model: str | None, name: str) -> None:
    assert v2.model_of(model) == name
    with pytest.raises(InvalidRequest) as raised:
        v2.model_of("projects/p/glossaries/x")
    assert raised.value.field == "model"
