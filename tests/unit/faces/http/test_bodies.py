"""Reading of bodies, of URL-encoded forms and of forms with a document, and documents as answers."""

import re
import time
from typing import Literal
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from service.domain.errors import InvalidRequest
from service.faces.http.application import FormPart, HttpRequest
from service.faces.http.bodies import checked, form_of, json_of
from service.faces.http.forms import MAX_FIELDS, fields_of, list_name
from service.faces.http.uploads import attachment, file_answer, form_with_file, upload_of
from service.jobs.translation import TranslatedDocument


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
        (b'{"name": 1}', "name is 1; allowed: a string."),
        (b'{"name": "a", "kind": "tiny"}', "kind is 'tiny'; allowed: 'big' or 'small'."),
        (b'{"name": "a", "inners": [{}, {"size": "3"}]}', "inners[1].size is '3'; allowed: a whole number."),
        (b'{"name": "a", "inners": {}}', "inners is an object; allowed: a list."),
        (b'{"name": "a", "inners": [7]}', "inners[0] is 7; allowed: an object."),
        (b'{"name": "a", "other": 1}', "other is unknown; leave it out."),
        (b'"text"', "the body is 'text'; allowed: an object."),
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
        (lambda: checked({"size": "x"}, Inner), "size is 'x'; allowed: a whole number"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            read()


PIECES = st.sampled_from([b"%", b"%4", b"%41", b"%c3%a9", b"%zz", b"&", b"=", b"+", b"a", "é".encode(), b"\xff", b";"])


@given(st.lists(PIECES).map(b"".join), st.sampled_from([b"", b"%41" * 100]))
def test_it_is_read_as_the_standard_library_does(form: bytes, more: bytes) -> None:
    form += more  # many encoded bytes are decoded in another way
    try:
        expected = parse_qsl(form.decode(), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        with pytest.raises(InvalidRequest, match="not UTF-8"):
            fields_of(form)
    else:
        assert fields_of(form) == expected


def test_a_byte_order_mark_is_no_part_of_the_first_name() -> None:
    assert fields_of(b"\xef\xbb\xbfq=a") == [("q", "a")]


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("q[]", "q"),
        ("q[0]", "q"),
        ("text[12]", "text"),
        ("q", ""),
        ("[]", ""),
        ("q[a]", ""),
        ("q[0][1]", ""),
        ("q[", ""),
    ],
)
def test_an_entry_of_a_list_is_called_as_php_and_jquery_do(name: str, of: str) -> None:
    assert list_name(name) == of


@pytest.mark.parametrize("piece", [b"%", b"%41", b"%c3%a9", b"%4", b"%41a", b"+", b"=", b";", b"%zz"])
def test_no_form_takes_long(piece: bytes) -> None:
    form = b"q=" + piece * (2**20 // len(piece))
    began = time.thread_time()
    fields_of(form)
    assert time.thread_time() - began < 0.1


def test_too_many_fields_are_refused() -> None:
    assert len(fields_of(b"&".join([b"a=1"] * MAX_FIELDS))) == MAX_FIELDS
    for form in (b"&".join([b"a=1"] * (MAX_FIELDS + 1)), b"&" * 2**20):
        with pytest.raises(InvalidRequest, match=f"the form has too many fields; allowed: up to {MAX_FIELDS}"):
            fields_of(form)


def form(*parts: FormPart, kind: str = "multipart/form-data; boundary=b") -> HttpRequest:
    return HttpRequest("POST", "/v1/files", {"content-type": kind}, form=parts)


def file(content: bytes) -> FormPart:
    return FormPart("file", "a.txt", content)


def test_a_file_and_the_other_fields() -> None:
    sent, fields = form_with_file(form(file(b"text"), FormPart("x", None, b"1"), FormPart("x", None, b"2")))
    assert [(each.name, each.text) for each in fields] == [("x", "1"), ("x", "2")]
    upload = upload_of(sent)
    assert (upload.name, upload.data) == ("a.txt", b"text")
    assert upload_of(sent, "b.md").name == "b.md"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (form(), "file is missing; send the document as this field of the form."),
        (form(file(b"a"), file(b"b")), "file is given 2 times; allowed: one per call."),
        (form(kind="application/json"), "Content-Type is 'application/json'; allowed: multipart/form-data."),
    ],
)
def test_what_is_no_upload(request_: HttpRequest, message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        form_with_file(request_)
    assert str(raised.value) == message


@given(st.text(max_size=50))
def test_a_name_never_leaves_its_header(name: str) -> None:
    name = "".join(character for character in name if character.isprintable())  # as names of translated files are
    header = attachment(name)
    assert re.fullmatch(r"attachment; filename=\"[ -~]*\"(; filename\*=UTF-8''[!-~]*)?", header)
    assert header.count('"') == 2
    told = header.partition("''")[2]
    assert (unquote(told) if told else header[22:-1]) == name


def test_notes_are_told_in_ascii() -> None:
    document = TranslatedDocument("ä.de.txt", "text/plain", b"x", ("one.", "zwei: ü."), 1)
    answer = file_answer(document)
    assert answer.headers["X-Document-Notes"] == "one. zwei: ?."
    assert answer.headers["Content-Disposition"] == "attachment; filename=\"_.de.txt\"; filename*=UTF-8''%C3%A4.de.txt"
    assert "X-Document-Report" not in answer.headers
    report = {"num_texts": 1, "flags": {}, "finish_reasons": {}, "texts": [], "left_out": ["zwei: ü."]}
    told = file_answer(TranslatedDocument("a.txt", "text/plain", b"x", (), 1, report)).headers["X-Document-Report"]
    assert told == '{"num_texts": 1, "flags": {}, "finish_reasons": {}, "texts": []}'
    assert "X-Document-Notes" not in file_answer(TranslatedDocument("a.de.txt", "text/plain", b"x", (), 1)).headers
