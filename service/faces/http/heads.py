"""A request's head: the request line and the headers (RFC 9112 2 to 6), and what they say of the body's length.

httptools (llhttp, in C) reads one head at a time, complete and of bounded size. Given more, it would read on into the
body and the next requests, before anybody could count them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import httptools

from service.calls.call_hold import PIECE_BYTES
from service.faces.http.refusals import HeadRefused

MAX_HEAD_BYTES = PIECE_BYTES
_END = b"\r\n\r\n"
# What no head contains: controls other than tab, and a line end that is not CR LF (RFC 9112 2.2).
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n|\Z)")
_HOST = re.compile(r"[^\s/\\?#@]*")
_VERSIONS = ("1.0", "1.1")
CHUNKED = -1  # as a body's length


@dataclass(frozen=True, slots=True)
class Head:
    """A request's head. `path` is as sent, without the query; names of `headers` are in lower case; of those with the
    same name the last counts.

    `body_bytes` is the length of the body, or `CHUNKED`. `is_last` says that the connection ends after the answer.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    num_headers: int
    body_bytes: int
    is_last: bool
    is_http_1_0: bool


def find_end(received: bytearray, begin: int) -> int:
    """Return where the head at the beginning of `received` ends, or 0 if it is incomplete.

    What is before `begin` was searched before.

    Raises:
        HeadRefused: it is too large, or it can't become a head.
    """
    begin = max(0, begin - len(_END) + 1)
    end = received.find(_END, begin)
    end = end + len(_END) if end >= 0 else 0
    if _FORBIDDEN.search(received, begin, end or len(received)):
        raise _malformed("a control character, or a line that does not end with CR LF")
    if not end and len(received) >= MAX_HEAD_BYTES:
        in_line = received.find(b"\r\n") < 0
        raise HeadRefused(
            HTTPStatus.REQUEST_URI_TOO_LONG if in_line else HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the request line and the headers have more than {size} bytes",
            size=MAX_HEAD_BYTES,
            advice="send what is long in a body",
        )
    return end


def parse_head(head: bytes) -> Head:
    """Return what a complete head says.

    Raises:
        HeadRefused: it is not a head of HTTP/1.0 or 1.1, or does not say clearly where the body ends.
    """
    fields = _Fields()
    parser = httptools.HttpRequestParser(fields)
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        pass  # an offer, which is not taken up: the request is answered like any other (RFC 9110 7.8)
    except httptools.HttpParserError as error:
        raise _malformed(str(error)) from None
    version = parser.get_http_version()
    if version not in _VERSIONS:
        raise _malformed(f"HTTP/{version}")
    headers = {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in fields.lines}
    is_http_1_0 = version == "1.0"
    num_hosts = sum(len(name) == 4 and name.lower() == b"host" for name, _ in fields.lines)
    if num_hosts > 1 or not (num_hosts or is_http_1_0):
        raise _malformed(f"{num_hosts} Host headers")  # RFC 9112 3.2
    if not _HOST.fullmatch(headers.get("host", "")):
        raise _malformed("an invalid Host")
    path, query = _path_and_query(fields.target)
    connection = headers.get("connection", "").lower()
    return Head(
        parser.get_method().decode("latin-1"),
        path,
        query,
        headers,
        len(fields.lines),
        _body_bytes(headers, is_http_1_0=is_http_1_0),
        is_last=is_http_1_0 or "close" in connection,
        is_http_1_0=is_http_1_0,
    )


class _Fields:
    """What httptools finds."""

    def __init__(self) -> None:
        self.target = b""
        self.lines: list[tuple[bytes, bytes]] = []

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.lines.append((name, value))


def _path_and_query(target: bytes) -> tuple[str, str]:
    """Return both parts of a target in origin form; of one in absolute form, those behind the authority."""
    if not target.startswith((b"/", b"*")):
        try:
            url = httptools.parse_url(target)
        except httptools.HttpParserError:
            raise _malformed("an invalid target") from None
        return (url.path or b"/").decode("latin-1"), (url.query or b"").decode("latin-1")
    path, _, query = target.decode("latin-1").partition("#")[0].partition("?")
    return path, query


def _body_bytes(headers: Mapping[str, str], *, is_http_1_0: bool) -> int:
    """Return the body's length (RFC 9112 6.3); httptools has refused what contradicts itself."""
    coding = headers.get("transfer-encoding")
    if coding is None:
        return int(headers.get("content-length", 0))
    if is_http_1_0:
        raise _malformed("Transfer-Encoding in HTTP/1.0")
    if coding.lower() != "chunked":
        raise HeadRefused(
            HTTPStatus.NOT_IMPLEMENTED,
            "Transfer-Encoding is {given}",
            given=coding,
            allowed="chunked",
            advice="send the body as it is",
        )
    return CHUNKED


def _malformed(found: str) -> HeadRefused:
    return HeadRefused(
        HTTPStatus.BAD_REQUEST,
        "this is no request of HTTP/1.1: {found}",
        found=found,
        advice="send one as RFC 9112 defines",
    )
