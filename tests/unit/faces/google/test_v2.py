"""Parameters, answers and errors of Cloud Translation v2."""

import pytest

from service.domain.errors import InvalidRequest
from service.domain.translation import DetectedLanguage
from service.faces.google import v2
from service.faces.google.v2 import (
    DetectParameters,
    LanguagesParameters,
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
    "request_",
    [
        posted(b'{"q": ["a", "b"], "target": "de", "source": "en", "format": "text", "model": null, "cid": []}'),
        posted(b'{"q": ["a", "b"], "target": "de"}', query="source=en&format=text&key=k"),
        posted(b'{"q": "a", "target": "de"}', query="q=b&source=en&format=text"),
        posted(b"q=a&q=b&target=de&source=en&format=text&prettyPrint=1", FORM),
        posted(b"q=a&target=de", FORM, "q=b&source=en&format=text"),
        posted(b"", query="q=a&q=b&target=de&source=en&format=text"),
        got("q=a&q=b&target=de&source=en&format=text&key=k&alt=json"),
    ],
)
def test_parameters_are_in_the_query_in_json_or_in_a_form(request_: HttpRequest) -> None:
    parameters = parameters_in(request_, TranslateParameters)
    assert sorted(parameters.q) == ["a", "b"]
    assert (parameters.target, parameters.source, parameters.format, parameters.model) == ("de", "en", "text", None)
    assert not parameters.cid


def test_one_text_is_a_list_of_one() -> None:
    assert parameters_in(posted(b'{"q": "a b"}'), DetectParameters).q == ["a b"]
    assert parameters_in(got("q=a+b"), DetectParameters).q == ["a b"]
    assert parameters_in(got("target=de"), LanguagesParameters).target == "de"


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
