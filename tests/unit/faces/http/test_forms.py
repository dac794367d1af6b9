"""Parsing of URL-encoded forms: as the standard library does, and fast whatever they contain."""

import time
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.faces.http.forms import MAX_FIELDS, fields_of, list_name

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
        with pytest.raises(InvalidRequest, match=f"the form has too many fields; allowed is up to {MAX_FIELDS}"):
            fields_of(form)
