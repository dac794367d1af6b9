"""Forms as multipart/form-data."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.faces.http.application import FormPart, HttpRequest
from service.faces.http.forms import MAX_FIELDS
from service.faces.http.multipart import FormReader, fields_of_any_form

END = b"\r\n--b--\r\n"


def request(body: bytes, content_type: str = "multipart/form-data; boundary=b") -> HttpRequest:
    return HttpRequest("POST", "/", {"content-type": content_type}, body)


def parts_of_form(request: HttpRequest, at_once: int = 8192) -> list[FormPart]:
    """Read a form as it arrives, so many bytes at once."""

    async def read() -> list[FormPart]:
        reader = FormReader(request.headers)
        for at in range(0, len(request.body), at_once):
            await reader.feed(request.body[at : at + at_once])
        await reader.feed(b"")
        return reader.parts

    return asyncio.run(read())


def field(name: str, content: bytes, *headers: str) -> bytes:
    head = "\r\n".join([f'Content-Disposition: form-data; name="{name}"', *headers])
    return b"--b\r\n" + head.encode() + b"\r\n\r\n" + content


def test_fields_and_files_come_in_order() -> None:
    body = b"\r\n".join(
        [
            field("q", "Grüße\r\nan alle".encode()),
            field("q", b""),
            b'--b\r\ncontent-disposition:form-data;filename="a \\"b\\".txt" ; NAME=file\r\n'
            b"Content-Type: text/plain\r\nContent-Transfer-Encoding: Binary\r\n\r\n --b\n\xff\r\n",
        ]
    )
    parts = parts_of_form(request(body + END))
    assert parts == [
        FormPart("q", None, "Grüße\r\nan alle".encode()),
        FormPart("q", None, b""),
        FormPart("file", 'a "b".txt', b" --b\n\xff\r\n"),
    ]
    assert parts[0].text == "Grüße\r\nan alle"


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ("filename*=utf-8''f%C3%BCr%20dich.srt", "für dich.srt"),
        ("FileName*=\"UTF-8'de'f%C3%BCr.srt\"", "für.srt"),
        ("filename*=iso-8859-1''f%FCr.srt; filename=x.srt", "für.srt"),
        ("filename=\"=?utf-8?B?ZsO8ci5zcnQ=?=\"; filename*=utf-8''f%C3%BCr.srt", "für.srt"),
        ('filename="=?utf-8?B?ZsO8ci5zcnQ=?="', "für.srt"),
        ('filename="=?ISO-8859-1?Q?f=FCr.srt?="', "für.srt"),
        ("filename*=klingon''%61.srt; filename=b.srt", "b.srt"),
        ("filename*=utf-8''%ff.srt; filename=\"b.srt\"", "b.srt"),
        ('filename="=?klingon?B?YQ==?="', "=?klingon?B?YQ==?="),
        ("filename=f%C3%BCr.srt", "f%C3%BCr.srt"),
    ],
)
def test_a_files_name_is_found_in_each_of_its_forms(disposition: str, name: str) -> None:
    [part] = parts_of_form(
        request(f"--b\r\nContent-Disposition: form-data; name=f; {disposition}\r\n\r\na".encode() + END)
    )
    assert (part.name, part.filename) == ("f", name)


def test_a_form_is_one_in_either_encoding() -> None:
    file = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\na'
    body = b"\r\n".join([field("q", b"a"), file, field("q", b"b")])
    sent = request(body + END)
    assert fields_of_any_form(replace(sent, form=parts_of_form(sent))) == [("q", "a"), ("q", "b")]
    encoded = "application/x-www-form-urlencoded; charset=utf-8"
    assert fields_of_any_form(request(b"q=a&q=b", encoded)) == [("q", "a"), ("q", "b")]
    assert fields_of_any_form(request(b' {"q": "a"}', encoded)) is None  # as `curl -d` sends JSON
    for other in ("application/json", "text/plain", ""):
        assert fields_of_any_form(request(b"q=a", other)) is None


def test_what_surrounds_the_parts_is_ignored() -> None:
    body = b"a preamble\r\n" + field("q", b"a") + END + b"an epilogue\r\n--b\r\n"
    quoted = 'multipart/form-data; charset=utf-8; boundary="b"'
    assert parts_of_form(request(body, quoted)) == [FormPart("q", None, b"a")]
    assert parts_of_form(request(b"--b--")) == []


@pytest.mark.parametrize(
    ("body", "parameters", "problem"),
    [
        (b"", "", "boundary in Content-Type has 0 characters"),
        (b"", f"boundary={'b' * 1025}", "boundary in Content-Type has 1025 characters"),
        (b"", "boundary=b", "part 1 of the form is cut off"),
        (b"q=a", "boundary=b", "part 1 of the form is cut off"),
        (field("q", b"a") + END, "boundary=c", "part 1 of the form is cut off"),
        (field("q", b"a"), "boundary=b", "part 1"),
        (field("q", b"a") + b"\r\n" + field("q", b"a"), "boundary=b", "part 2"),
        (b"--b\r\nContent-Disposition: form-data; name=q" + END, "boundary=b", "part 1"),
        (b"--bc\r\n\r\n" + END, "boundary=b", "part 1"),
        (field("q", b"a", "X-Large: " + "x" * 8192) + END, "boundary=b", "part 1"),
        (b"--b\r\n\r\na" + END, "boundary=b", "Missing Content-Disposition"),
        (b"--b\r\nContent-Disposition: attachment; name=q\r\n\r\na" + END, "boundary=b", "header: Wrong type"),
        (field("q", b"YQ==", "Content-Transfer-Encoding: base64") + END, "boundary=b", "-Encoding 'base64'"),
        ((field("q", b"") + b"\r\n") * (MAX_FIELDS + 1) + b"--b--", "boundary=b", f"up to {MAX_FIELDS}"),
    ],
)
def test_what_is_not_well_formed_is_refused(body: bytes, parameters: str, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        parts_of_form(request(body, f"multipart/form-data; {parameters}"))


def test_a_text_that_is_not_utf_8_is_refused() -> None:
    [part] = parts_of_form(request(field("q", b"\xff") + END))
    with pytest.raises(InvalidRequest, match="form field 'q' is not UTF-8"):
        part.text  # noqa: B018


@given(st.lists(st.tuples(st.text(st.characters(categories=["L", "N"]), min_size=1), st.binary())))
def test_any_content_comes_back(fields: list[tuple[str, bytes]]) -> None:
    fields = [(name, content) for name, content in fields if b"\r\n--b" not in b"\r\n" + content]
    body = b"\r\n".join(field(name, content) for name, content in fields)
    assert [(part.name, part.content) for part in parts_of_form(request(body + END))] == fields
