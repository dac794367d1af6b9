"""Parameters in JSON, forms and queries."""

import json
from urllib.parse import urlencode

import pytest

from service.domain.errors import InvalidRequest
from service.faces.deepl.messages import TranslateParameters
from service.faces.deepl.parameters import KEY, parameters_in
from service.faces.http.application import HttpRequest

FORM = {"content-type": "application/x-www-form-urlencoded"}


def form(body: str, query: str = "") -> HttpRequest:
    return HttpRequest("POST", "/v2/translate", FORM, body.encode(), query)


def test_a_form_a_query_and_json_mean_the_same() -> None:
    fields = [("text", "a b"), ("text", "ü"), ("target_lang", "DE"), ("ignore_tags", "x,y"), ("auth_key", "k")]
    document = {"text": ["a b", "ü"], "target_lang": "DE", "ignore_tags": ["x", "y"], "auth_key": "k"}
    requests = [
        form(urlencode(fields)),
        form(urlencode([("text[]", "a b"), ("text[]", "ü"), *fields[2:]])),
        form(
            urlencode(
                [("text[0]", "a b"), ("text[1]", "ü"), ("target_lang", "DE"), ("ignore_tags[]", "x,y"), fields[4]]
            )
        ),
        form(json.dumps(document)),  # as `curl -d` sends it
        HttpRequest(
            "POST", "/v2/translate", {"content-type": "text/json; charset=utf-8"}, json.dumps(document).encode()
        ),
        form("", urlencode(fields)),
        form(urlencode(fields[:2]), urlencode(fields[2:])),
        HttpRequest("POST", "/v2/translate", {"content-type": "application/json"}, json.dumps(document).encode()),
        HttpRequest("GET", "/v2/translate", FORM, urlencode(fields).encode()),
    ]
    for request in requests:
        parameters = parameters_in(request, TranslateParameters)
        assert (parameters.text, parameters.target_lang, parameters.ignore_tags) == (["a b", "ü"], "DE", ["x", "y"])
        assert KEY.find(request) == "k"


def test_a_body_counts_before_a_query() -> None:
    request = form("text=a&target_lang=DE", "target_lang=FR")
    assert parameters_in(request, TranslateParameters).target_lang == "DE"


def test_other_types_of_bodies_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="Content-Type is 'text/plain'"):
        parameters_in(HttpRequest("POST", "/", {"content-type": "text/plain"}, b"text=a"), TranslateParameters)
    with pytest.raises(InvalidRequest, match="text is missing"):
        parameters_in(form("target_lang=DE"), TranslateParameters)
