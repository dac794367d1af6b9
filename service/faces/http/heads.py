"""A request's head: the request line and the headers (RFC 9112 2 to 6), and what they say of the body's length.
httptools (llhttp, in C) gets one complete head of bounded size: it would read on into the body and further requests."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

import httptools

from service.calls.open_calls import PIECE_BYTES
from service.faces.http.refusals import HeadRefused

MAX_HEAD_BYTES = PIECE_BYTES
MAX_HEADERS = 100
MAX_PATH_BYTES = 16 * 2**10  # two names of the most characters, percent-encoded
CHUNKED = -1  # as a body's length

_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_IN_LINES = bytes(byte for byte in range(256) if byte == ord("\t") or (byte >= ord(" ") and byte != 0x7F))
_HTTP_1_0 = b" HTTP/1.0"
_PROTOCOLS = (b" HTTP/1.1", _HTTP_1_0)  # llhttp takes others, too: RTSP/1.0
_HOST = re.compile(r"[^\s/\\?#@]{0,1024}+")
# Of several lines with one of these names all count (RFC 9110 5.3): the last alone would say something else.
_LISTS = ("transfer-encoding", "content-encoding", "connection", "expect")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*+([0-9]{1,15})[ \t]*+\r\n", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Head:
    """A request's head.

    `path` is as sent, without query; names of `headers` are in lower case, the last counts, of lists all. `body_bytes`
    is the body's length, or `CHUNKED`; if `is_last`, the connection ends after the answer.
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

    What is before `begin` was searched before. Raise `HeadRefused` if it is too large, or can't become a head.
    """
    begin = max(0, begin - len(_END) + 1)
    end = received.find(_END, begin)
    end = end + len(_END) if end >= 0 else 0
    if not _is_in_lines(received[begin : end or len(received)], received[begin - 1 : begin]):
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
    """Parse a complete head; of too many headers, which are to be refused, only the first ones.

    Raise `HeadRefused` if it is not of HTTP/1.0 or 1.1, its path is too long, or the end of the body is ambiguous.
    """
    num_headers = head.count(b"\n") - 2
    if num_headers > MAX_HEADERS:
        head = _LINE_END.join(head.split(_LINE_END, MAX_HEADERS + 1)[:-1]) + _END
    line = head[: head.find(_LINE_END)]
    if not line.endswith(_PROTOCOLS):
        raise _malformed("the request line has another version")
    fields = _Fields()
    parser = httptools.HttpRequestParser(fields)
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        pass  # an offer, which is not taken up: the request is answered like any other (RFC 9110 7.8)
    except httptools.HttpParserError as error:
        raise _malformed(str(error)) from None
    headers = _headers(fields.lines)
    is_http_1_0 = line.endswith(_HTTP_1_0)
    if "host" not in headers and not is_http_1_0:
        raise _malformed("no Host header")  # RFC 9112 3.2
    if not _HOST.fullmatch(headers.get("host", "")):
        raise _malformed("an invalid Host")
    path, query = _path_and_query(fields.target)
    connection = headers.get("connection", "").lower()
    return Head(
        parser.get_method().decode("latin-1"),
        path,
        query,
        headers,
        num_headers,
        _body_bytes(headers, is_http_1_0=is_http_1_0),
        is_last=is_http_1_0 or "close" in connection or num_headers > MAX_HEADERS,
        is_http_1_0=is_http_1_0,
    )


def num_requests(received: bytearray, begin: int, most: int) -> int:
    """Return how many requests begin behind `begin`, where one does; more than `most` count as one more.

    Only complete heads count. Contents of bodies do not, unless they are in chunks.
    """
    number = 0
    while number <= most and (end := received.find(_END, begin)) >= 0:
        number += received.find(b" HTTP/1.", begin, end) >= 0
        length = _LENGTH.search(received, begin, end + len(_LINE_END))
        begin = end + len(_END) + (int(length[1]) if length else 0)
    return number


class _Fields:
    """The result of httptools."""

    def __init__(self) -> None:
        self.target = b""
        self.lines: list[tuple[bytes, bytes]] = []

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.lines.append((name, value))


def _is_in_lines(part: bytearray, before: bytearray) -> bool:
    """Return whether a part of a head, after the byte `before`, has no controls but tab and CR LF (RFC 9112 2.2)."""
    num_controls = len(part.translate(None, _IN_LINES))
    num_cut = part.endswith(b"\r") + (before == b"\r" and part.startswith(b"\n"))
    return num_controls == num_cut + len(_LINE_END) * part.count(_LINE_END)


def _headers(lines: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, value = line[0].decode("latin-1").lower(), line[1].decode("latin-1").strip()
        if name in headers:
            if name == "host":
                raise _malformed("several Host headers")  # RFC 9112 3.2
            if name in _LISTS:
                value = f"{headers[name]}, {value}"
        headers[name] = value
    return headers


def _path_and_query(target: bytes) -> tuple[str, str]:
    """Return both parts of a target in origin form; of one in absolute form, those behind the authority."""
    size = target.find(b"?") if b"?" in target else len(target)
    if size > MAX_PATH_BYTES:
        raise HeadRefused(
            HTTPStatus.REQUEST_URI_TOO_LONG,
            "the path has {size} bytes",
            size=size,
            allowed=f"up to {MAX_PATH_BYTES}",
            advice="send what is long in a body",
        )
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
        "this is not a valid HTTP request: {found}",
        found=found,
        advice="send one as RFC 9112 defines",
    )
