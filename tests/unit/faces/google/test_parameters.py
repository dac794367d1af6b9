"""Parameters that all of Google's APIs have."""

import pytest

from service.domain.errors import InvalidRequest
from service.faces.google.parameters import KEY, own_fields
from service.faces.http.application import HttpRequest


def test_they_are_no_fields_of_a_request() -> None:
    general = [("key", "k"), ("$.xgafv", "2"), ("prettyPrint", "false"), ("$prettyPrint", "0"), ("quotaUser", "u")]
    general += [("alt", "json"), ("$alt", "json;enum-encoding=int")]
    assert own_fields([*general, ("q", "a"), ("q", "b")]) == [("q", "a"), ("q", "b")]


@pytest.mark.parametrize("name", ["alt", "$alt"])
@pytest.mark.parametrize("value", ["", "media", "proto", "jsonp"])
def test_answers_are_json_only(name: str, value: str) -> None:
    with pytest.raises(InvalidRequest, match="allowed is json") as raised:
        own_fields([(name, value)])
    assert raised.value.field == "alt"


@pytest.mark.parametrize(
    ("query", "key"), [("q=a", ""), ("q=key&key=a%20b", "a b"), ("$key=c", "c"), ("a=b&%24.key=c", "c"), ("akey=c", "")]
)
def test_a_key_in_the_query(query: str, key: str) -> None:
    assert KEY.find(HttpRequest("GET", "/", {}, query=query)) == key
