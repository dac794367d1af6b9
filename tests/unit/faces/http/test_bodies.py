"""Reading of bodies: what is wrong with one, in the words of every other invalid request."""

import contextlib
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from service.domain.errors import InvalidRequest
from service.faces.http.application import HttpRequest
from service.faces.http.bodies import checked, form_of, json_of
from service.faces.http.forms import fields_of


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    size: int = 1


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    kind: Literal["big", "small"] = "big"
    inners: list[Inner] = []


def request(body: bytes, content_type: str = "application/json; charset=utf-8") -> HttpRequest:
    return HttpRequest("POST", "/", {"content-type": content_type}, body)


def test_a_good_body_is_read() -> None:
    body = json_of(request(b'{"name": "a", "inners": [{"size": 3}]}'), Body)
    assert (body.name, body.kind, body.inners[0].size) == ("a", "big", 3)
    assert json_of(HttpRequest("POST", "/", {}, b'{"name": "a"}'), Body).name == "a"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{}", "name is missing."),
        (b'{"name": 1}', "name is 1; allowed is a string."),
        (b'{"name": "a", "kind": "tiny"}', "kind is 'tiny'; allowed is 'big' or 'small'."),
        (b'{"name": "a", "inners": [{}, {"size": "3"}]}', "inners[1].size is '3'; allowed is a whole number."),
        (b'{"name": "a", "inners": {}}', "inners is an object; allowed is a list."),
        (b'{"name": "a", "inners": [7]}', "inners[0] is 7; allowed is an object."),
        (b'{"name": "a", "other": 1}', "other is unknown; leave it out."),
        (b'"text"', "the body is 'text'; allowed is an object."),
        (b"nonsense", "the body is not JSON: expected ident at line 1 column 2."),
    ],
)
def test_the_first_problem_is_told_with_its_place(body: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        json_of(request(body), Body)
    assert str(raised.value) == message
    assert "tiny" not in raised.value.redacted, "what callers wrote is not for operators"


def test_a_form_keeps_the_order_and_repetitions_and_its_numbers_are_texts() -> None:
    form = request(b"text=Gr%C3%BC%C3%9Fe&text=b+c&lang=", "application/x-www-form-urlencoded")
    assert fields_of(form.body) == [("text", "Grüße"), ("text", "b c"), ("lang", "")]
    assert checked({"size": "3"}, Inner).size == 3
    for read, message in (
        (lambda: form_of("text=%ff"), "not UTF-8"),
        (lambda: form_of("&".join(["a=1"] * 5000)), "too many fields"),
        (lambda: checked({"size": "x"}, Inner), "size is 'x'; allowed is a whole number"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            read()


@given(st.binary(max_size=200))
def test_no_body_is_a_fault_of_ours(body: bytes) -> None:
    with contextlib.suppress(InvalidRequest):
        json_of(request(body), Body)
