"""Reading lines."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.cli.errors import CommandError
from service.cli.streams import MAX_LINE_BYTES, count_lines, read_lines

TEXT = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\r\n\u2028\x0b\x0c\x85")))


@given(TEXT)
def test_lines_and_their_ends_are_the_input(text: str) -> None:
    lines = list(read_lines(io.BytesIO(text.encode())))
    assert "".join(line.text + line.ending for line in lines) == text
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert all("\n" not in line.text for line in lines)
    assert len(lines) == count_lines(io.BytesIO(text.encode()))


def test_only_line_feeds_end_lines() -> None:
    lines = list(read_lines(io.BytesIO("a\r\nb\rc\u2028d\n\ne".encode())))
    assert [(line.text, line.ending) for line in lines] == [("a", "\r\n"), ("b\rc\u2028d", "\n"), ("", "\n"), ("e", "")]


def test_what_is_not_utf8_names_line_and_byte() -> None:
    lines = read_lines(io.BytesIO(b"fine\nb\xe4d\nnext\n"))
    assert next(lines).text == "fine"
    with pytest.raises(CommandError, match=r"line 2 is not UTF-8 \(byte 2 is 0xe4\)") as raised:
        next(lines)
    assert raised.value.exit_code == 65


def test_a_line_without_end_is_not_read_into_memory() -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> Any:
            return True

        def readinto(self, buffer: Any) -> Any:
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    with pytest.raises(CommandError, match="line 1 is longer than"):
        next(read_lines(io.BufferedReader(Endless())))
    assert len(next(read_lines(io.BytesIO(b"x" * MAX_LINE_BYTES))).text) == MAX_LINE_BYTES


def test_counting_leaves_the_stream_where_it_was() -> None:
    stream = io.BytesIO(b"a\nb\nc")
    stream.readline()
    assert count_lines(stream) == 2
    assert stream.read() == b"b\nc"
