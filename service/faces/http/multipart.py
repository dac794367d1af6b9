"""Reading of forms as multipart/form-data (RFC 7578, RFC 2046 5.1), as browsers and `curl -F` send them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from service.domain.errors import InvalidRequest, Quoted, quoted
from service.faces.http.application import HttpRequest
from service.faces.http.bodies import FORM, content_type, fields_of_form

MULTIPART = "multipart/form-data"

_MAX_PARTS = 4096
_MAX_HEAD_BYTES = 8192  # of one part's headers
_MAX_BOUNDARY = 200  # characters; RFC 2046 allows 70
_PARAMETER = re.compile(r';\s*([\w!#$%&\'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))', re.ASCII)
_ESCAPED = re.compile(r"\\([\"\\])")
_UNENCODED = ("", "7bit", "8bit", "binary")  # values of Content-Transfer-Encoding


@dataclass(frozen=True, slots=True)
class FormPart:
    """One field of a form; `filename` is `None` unless it is a file."""

    name: str
    filename: str | None
    content: bytes

    @property
    def text(self) -> str:
        """Return the content of a field that is no file.

        Raises:
            InvalidRequest: it is not UTF-8.
        """
        try:
            return self.content.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidRequest(
                "form field {name} is not UTF-8", name=self.name, advice="encode it as UTF-8"
            ) from None


def fields_of_any_form(request: HttpRequest) -> list[tuple[str, str]] | None:
    """Return the fields of a body that is a form in either encoding, in order and without files; `None` if it is none.

    Raises:
        InvalidRequest: as for `fields_of_form` and `parts_of_form`.
    """
    kind = content_type(request)
    if kind == FORM:
        return fields_of_form(request)
    if kind == MULTIPART:
        return [(part.name, part.text) for part in parts_of_form(request) if part.filename is None]
    return None


def parts_of_form(request: HttpRequest) -> list[FormPart]:
    """Return the fields of a body of `MULTIPART`, in order.

    Raises:
        InvalidRequest: it is cut off or not well-formed, or has too many parts.
    """
    _, parameters = _value_and_parameters(request.headers.get("content-type", ""))
    boundary = parameters.get("boundary", "")
    if not 0 < len(boundary) <= _MAX_BOUNDARY:
        raise InvalidRequest(
            "Content-Type has a boundary of {number} characters",
            number=len(boundary),
            allowed=f"1 to {_MAX_BOUNDARY}",
        )
    return [_part(head, content) for head, content in _sections(request.body, b"--" + boundary.encode("latin-1"))]


def _sections(body: bytes, delimiter: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each part's headers and content."""
    line = b"\r\n" + delimiter
    at = 0 if body.startswith(delimiter) else body.find(line) + len(b"\r\n")
    if not body.startswith(delimiter, at):
        raise InvalidRequest("the form has no part that begins with its boundary")
    number = 0
    while True:
        at += len(delimiter)
        if body.startswith(b"--", at):
            return
        number += 1
        if number > _MAX_PARTS:
            raise InvalidRequest("the form has too many fields", allowed=f"up to {_MAX_PARTS}")
        padding = body.find(b"\r\n", at, at + _MAX_HEAD_BYTES)
        if padding < 0 or body[at:padding].strip(b" \t"):
            raise _malformed(number)
        begin = padding  # the line end is also that of headers which are empty
        end = body.find(b"\r\n\r\n", begin, begin + _MAX_HEAD_BYTES)
        following = body.find(line, end) if end >= 0 else -1
        if following < 0:
            raise _malformed(number)
        yield body[begin:end], body[end + len(b"\r\n\r\n") : following]
        at = following + len(b"\r\n")


def _malformed(number: int) -> InvalidRequest:
    return InvalidRequest(
        "part {number} of the form is cut off or not well-formed",
        number=number,
        advice="send it as RFC 7578 defines, with the boundary of Content-Type",
    )


def _part(head: bytes, content: bytes) -> FormPart:
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    kind, parameters = _value_and_parameters(headers.get("content-disposition", ""))
    if kind != "form-data" or "name" not in parameters:
        shown = Quoted(quoted(headers.get("content-disposition", "")))
        raise InvalidRequest(
            "a part of the form has Content-Disposition {given}", given=shown, allowed='form-data; name="..."'
        )
    encoding = headers.get("content-transfer-encoding", "").lower()
    if encoding not in _UNENCODED:
        raise InvalidRequest(
            "form field {name} has Content-Transfer-Encoding {given}",
            name=parameters["name"],
            given=encoding,
            allowed="binary",
        )
    return FormPart(parameters["name"], parameters.get("filename"), content)


def _value_and_parameters(header: str) -> tuple[str, dict[str, str]]:
    """Return the value of a header such as `form-data; name="q"`, and its parameters, both with names in lower case."""
    found = {
        match[1].lower(): match[3] if match[2] is None else _ESCAPED.sub(r"\1", match[2])
        for match in _PARAMETER.finditer(header)
    }
    return header.partition(";")[0].strip().lower(), found
