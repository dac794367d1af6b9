"""Heads and chunks of requests; `tests/faults/test_http_framing.py` has what a whole port does with them."""

import contextlib
from http import HTTPStatus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.faces.http.chunks import MAX_CHUNKS, ChunkReader
from service.faces.http.heads import CHUNKED, MAX_HEAD_BYTES, MAX_HEADERS, find_end, num_requests, parse_head
from service.faces.http.refusals import HeadRefused

HEAD = b"POST /v1/translate?a=b#c HTTP/1.1\r\nHost: a\r\nX-Word: \xe4 b \r\nx-word: c\r\nContent-Length: 7\r\n\r\n"


def test_what_a_head_says() -> None:
    head = parse_head(HEAD)
    assert (head.method, head.path, head.query) == ("POST", "/v1/translate", "a=b")
    assert head.headers == {"host": "a", "x-word": "c", "content-length": "7"}
    assert (head.num_headers, head.body_bytes, head.is_last, head.is_http_1_0) == (4, 7, False, False)


@pytest.mark.parametrize(
    ("line", "body_bytes", "is_last"),
    [
        (b"Transfer-Encoding: Chunked", CHUNKED, False),
        (b"Connection: close", 0, True),
        (b"Connection: Keep-Alive, Close", 0, True),
        (b"Connection: keep-alive", 0, False),
        (b"Upgrade: h2c", 0, False),
    ],
)
def test_where_a_body_ends_and_a_connection(line: bytes, body_bytes: int, *, is_last: bool) -> None:
    head = parse_head(b"GET / HTTP/1.1\r\nHost: a\r\n" + line + b"\r\n\r\n")
    assert (head.body_bytes, head.is_last) == (body_bytes, is_last)


def test_http_1_0_is_answered_once() -> None:
    head = parse_head(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert (head.is_http_1_0, head.is_last) == (True, True)


@given(st.integers(0, len(HEAD)))
def test_the_end_is_found_however_a_head_arrives(cut: int) -> None:
    received = bytearray(HEAD[:cut])
    end = find_end(received, 0)
    assert end == (len(HEAD) if cut == len(HEAD) else 0)
    begin = len(received)
    received += HEAD[cut:] + b"\0\n\rthe body"
    assert find_end(received, begin if cut < len(HEAD) else 0) == len(HEAD)


@pytest.mark.parametrize("wrong", [b"\0", b"\x1f", b"\x7f", b"a\nb", b"a\rb", b"\r\r\n"])
def test_what_can_not_become_a_head_is_refused_before_it_is_complete(wrong: bytes) -> None:
    with pytest.raises(HeadRefused) as raised:
        find_end(bytearray(b"GET / HTTP/1.1\r\nX-Word: " + wrong), 10)
    assert raised.value.status == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(
    ("begin", "status"),
    [
        (b"GET /", HTTPStatus.REQUEST_URI_TOO_LONG),
        (b"GET / HTTP/1.1\r\nX-Word: ", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
)
def test_a_head_has_a_limit(begin: bytes, status: HTTPStatus) -> None:
    received = bytearray(begin + b"a" * (MAX_HEAD_BYTES - len(begin) - 1))
    assert find_end(received, 0) == 0
    received += b"a"
    with pytest.raises(HeadRefused) as raised:
        find_end(received, len(received) - 1)
    assert raised.value.status == status


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("content-encoding", b"gzip", b"identity"),
        ("connection", b"close", b"keep-alive"),
        ("expect", b"x", b"100-continue"),
    ],
)
def test_of_a_list_all_lines_count(name: str, first: bytes, second: bytes) -> None:
    lines = b"".join(b"%s: %s\r\n" % (name.encode(), each) for each in (first, second))
    head = b"POST / HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n"
    assert parse_head(head).headers[name] == (first + b", " + second).decode()


def test_of_too_many_headers_only_the_first_are_read() -> None:
    lines = [b"X-%d: a" % number for number in range(13_000)]
    head = parse_head(b"\r\n".join([b"GET /a HTTP/1.1", b"Host: a", *lines]) + b"\r\n\r\n")
    assert (head.path, head.num_headers, len(head.headers), head.is_last) == ("/a", 13_001, MAX_HEADERS, True)


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\ncontent-length:  %d \r\n\r\n%s"


@pytest.mark.parametrize(
    ("behind", "number"),
    [
        (b"", 0),
        (GET[:-1], 0),
        (GET * 3, 3),
        (POST % (len(GET), GET) + GET, 2),
        (POST % (1000, GET * 3), 1),  # whose body has not arrived
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + GET, 2),
        (GET * 100, 6),
    ],
)
def test_how_many_requests_wait(behind: bytes, number: int) -> None:
    assert num_requests(bytearray(GET + behind), len(GET), 5) == number


@given(st.binary(max_size=200))
@example(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: \xb2\r\n\r\n")
def test_no_bytes_break_it(head: bytes) -> None:
    with contextlib.suppress(HeadRefused):
        if end := find_end(bytearray(head), 0):
            assert parse_head(head[:end]).path


NEXT = b"GET / HTTP/1.1\r\n"  # the request behind


def read(body: bytes, at_once: int) -> tuple[bytes, bytes]:
    """Return the content of a body that arrives in pieces, and what is behind it."""
    reader, received, content = ChunkReader(), bytearray(), b""
    for at in range(0, len(body), at_once):
        received += body[at : at + at_once]
        if not reader.is_complete:
            content += reader.take(received)
    assert reader.is_complete
    return content, bytes(received)


@given(st.lists(st.binary(min_size=1, max_size=300)), st.integers(1, 64), st.sampled_from([b"", b"A: b\r\nc:\r\n"]))
def test_the_content_comes_back(chunks: list[bytes], at_once: int, trailers: bytes) -> None:
    body = b"".join(b"%X;a=b\r\n%s\r\n" % (len(each), each) for each in chunks) + b"0\r\n" + trailers + b"\r\n"
    assert read(body + NEXT, at_once) == (b"".join(chunks), NEXT)


def test_of_many_only_some_are_read_at_once() -> None:
    reader, received = ChunkReader(), bytearray(b"1\r\na\r\n" * 1000 + b"0\r\n\r\n")
    sizes = []
    while not reader.is_complete:
        sizes.append(len(reader.take(received)))
    assert sum(sizes) == 1000
    assert set(sizes[:-1]) <= {MAX_CHUNKS, MAX_CHUNKS + 1}


@given(st.binary(max_size=100))
def test_no_bytes_break_chunks(body: bytes) -> None:
    with contextlib.suppress(HeadRefused):
        ChunkReader().take(bytearray(body))
