"""Parameters, answers and errors of Cloud Translation v2."""

import pytest

from service.domain.errors import InvalidRequest
from service.domain.translation import DetectedLanguage
from service.faces.google import v2
from service.faces.google.v2 import (
    TranslateParameters,
    parameters_in,
)
from service.faces.http.application import HttpRequest
from service.faces.http.languages import ListedLanguage

JSON, FORM = "application/json; charset=utf-8", "application/x-www-form-urlencoded"


def posted(body: bytes, kind: str = JSON, query: str = "") -> HttpRequest:
    return HttpRequest("POST", "/language/translate/v2", {"content-type": kind}, body, query)


def got(query: str) -> HttpRequest:
    return HttpRequest("GET", "/language/translate/v2", {}, query=query)


@pytest.mark.parametrize(
    ("request_", "field", "word"),
    [
        (posted(b'{"target": "de"}'), "q", "missing"),
        (posted(b'{"q": "a"}'), "target", "missing"),
        (posted(b'{"q": ["a", 1], "target": "de"}'), "q[1]", "a string"),
        (posted(b'{"q": {"a": 1}, "target": "de"}'), "q", "a list"),
        (posted(b'{"q": null, "target": "de"}'), "q", "a list"),
        (posted(b'{"q": "a", "target": 1}'), "target", "a string"),
        (posted(b'{"q": "a", "target": "de", "format": "rtf"}'), "format", "'html' or 'text'"),
        (posted(b'{"q": "a", "target": "de", "tone": 1}'), "tone", "unknown"),
        (posted(b'{"q": "a", "target": "de"}', query="target=fr"), "target", "twice"),
        (got("q=a&target=de&target=fr"), "target", "twice"),
        (got("q=a&target=de&tone=1"), "tone", "unknown"),
        (got("q=a&target=de&alt=jsonp"), "alt", "json"),
        (got("q=%FF&target=de"), "", "UTF-8"),
        (posted(b"q=%FF&target=de", FORM), "", "UTF-8"),
        (posted(b"[]"), "", "an object"),
        (posted(b"<q>a</q>", "text/xml"), "", "application/json"),
    ],
)
def test_what_is_wrong_is_named(request_: HttpRequest, field: str, word: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        parameters_in(request_, TranslateParameters)
    assert word in str(raised.value)
    if field:
        assert raised.value.field == field


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (None, ""),
        ("", ""),
        ("nmt", ""),
        ("base", ""),
        ("tiny", "tiny"),
        ("projects/p/locations/l/models/tiny", "tiny"),
        ("projects/p/models/general/nmt", ""),
    ],
)
def test_models(model: str | None, name: str) -> None:
    assert v2.model_of(model) == name


def test_a_resource_that_is_no_model() -> None:
    with pytest.raises(InvalidRequest) as raised:
        v2.model_of("projects/p/glossaries/x")
    assert raised.value.field == "model"


def test_answers() -> None:
    languages = [(DetectedLanguage("en", 0.75), DetectedLanguage("de", 0.25)), (DetectedLanguage("und", 0.0),)]
    assert v2.detections_document(languages) == {
        "data": {
            "detections": [
                [{"language": "en", "confidence": 0.75, "isReliable": False}],
                [{"language": "und", "confidence": 0.0, "isReliable": False}],
            ]
        }
    }
    listed = [ListedLanguage("de", "German", []), ListedLanguage("en", "English", ["de"])]
    assert v2.languages_document(listed, has_names=False) == {
        "data": {"languages": [{"language": "de"}, {"language": "en"}]}
    }
    assert v2.languages_document(listed, has_names=True)["data"]["languages"][1] == {
        "language": "en",
        "name": "English",
    }
