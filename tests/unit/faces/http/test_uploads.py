"""Forms with a document, and documents as answers."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.faces.http.application import FormPart, HttpRequest
from service.faces.http.uploads import attachment, file_answer, form_with_file, upload_of
from service.jobs.translation import TranslatedDocument


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
        (form(file(b"a"), file(b"b")), "file is there 2 times; allowed is one per call."),
        (form(kind="application/json"), "Content-Type is 'application/json'; allowed is multipart/form-data."),
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
