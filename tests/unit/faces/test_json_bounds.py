"""The values in a body of JSON, counted before it is parsed."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import TooMany
from service.faces.json_bounds import MAX_VALUES, check_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a,:[]{}"\\é')),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from('a,:[]{}"\\')), inner),
)


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"0," * MAX_VALUES + b"0]",
        b"[" + b'"",' * MAX_VALUES + b'""]',
        b'{"a":[' + b"{}," * MAX_VALUES + b"{}]}",
        b"{" + b",".join(b'"%d":0' % number for number in range(MAX_VALUES // 2 + 1)) + b"}",
        b"[" * (MAX_VALUES + 1),
        b'{"a":' * (MAX_VALUES // 2 + 1),
        b'["\\\\",' + b"0," * MAX_VALUES,
        b'["\\"",' + b"0," * MAX_VALUES,
    ],
)
def test_more_values_than_any_api_takes_are_refused(body: bytes) -> None:
    with pytest.raises(TooMany, match=r"the body has \d+ values in its lists and objects; allowed are 16384"):
        check_json(body)


@given(JSON)
def test_what_texts_contain_does_not_count(document: Any) -> None:
    check_json(json.dumps([document, "[,{:" * MAX_VALUES]).encode())


def test_as_many_as_all_limits_of_lists_together_are_read() -> None:
    term = {"source": "a,b", "target": "c", "case_sensitive": True}
    document = {
        "texts": ['"a", [b]'] * 1024,
        "target_prefixes": [","] * 1024,
        "terms": [term] * 1024,
        "labels": {f"label {number}": "x:y" for number in range(64)},
    }
    check_json(json.dumps(document).encode())
    tensor = {"name": "x", "datatype": "BYTES", "shape": [1024], "data": ["a"] * 900}
    check_json(json.dumps({"inputs": [tensor] * 16}).encode())


@pytest.mark.parametrize("body", [b'"' * 2**20, b'"' + b"\\" * 2**20, b'["' + b'\\",' * 350_000 + b'"]', b"," * 2**20])
def test_counting_takes_milliseconds(body: bytes) -> None:
    began = time.thread_time()
    with contextlib.suppress(TooMany):
        check_json(body)
    assert time.thread_time() - began < 0.1
