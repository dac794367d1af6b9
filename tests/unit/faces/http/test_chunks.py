"""Bodies in chunks, however they arrive."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.faces.http.chunks import MAX_CHUNKS, ChunkReader
from service.faces.http.refusals import HeadRefused

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


@pytest.mark.parametrize("at_once", [1, 1000])
@pytest.mark.parametrize(
    "body",
    [
        b"\r\n0\r\n\r\n",
        b"g\r\n",
        b"-1\r\n",
        b"1\nx\r\n",
        b"1\r\nxy\r\n",
        b"1\r\nx\n0\r\n\r\n",
        b"1" * 16 + b"\r\n",
        b"1;" + b"a" * 2000,
        b"0\r\nno trailer\r\n\r\n",
        b"0\r\n: no name\r\n\r\n",
        b"0\r\n" + b"A: b\r\n" * 2000,
        b"0\r\n" + b"A: " + b"b" * 9000,
    ],
)
def test_what_could_be_read_otherwise_is_refused(body: bytes, at_once: int) -> None:
    with pytest.raises(HeadRefused, match="the body's chunks are malformed"):
        read(body, at_once)


def test_of_many_only_some_are_read_at_once() -> None:
    reader, received = ChunkReader(), bytearray(b"1\r\na\r\n" * 1000 + b"0\r\n\r\n")
    sizes = []
    while not reader.is_complete:
        sizes.append(len(reader.take(received)))
    assert sum(sizes) == 1000
    assert set(sizes[:-1]) <= {MAX_CHUNKS, MAX_CHUNKS + 1}


@given(st.binary(max_size=100))
def test_no_bytes_break_it(body: bytes) -> None:
    with contextlib.suppress(HeadRefused):
        ChunkReader().take(bytearray(body))
