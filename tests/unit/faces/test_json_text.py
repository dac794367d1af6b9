"""Messages from JSON, and what is told of JSON that no parser takes: which item, and nothing of the others."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest, TooMany
from service.faces.grpc.json_messages import message_from_json, message_of
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from service.faces.http.bodies import from_json
from service.faces.json_text import MAX_VALUES, check_json, looks_like_json, shown_as_json
from service.faces.libretranslate.messages import TranslateBody, texts_of

Asked = pb.TranslateTextRequest
ASKED = '{"q": ["a", "grüß"], "target": "de"}'


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_another_encoding_is_named(encoding: str) -> None:
    with pytest.raises(InvalidRequest, match=f"the body is {encoding[:6].upper()}; allowed: UTF-8"):
        from_json(ASKED.encode(encoding), dict)


def test_the_first_byte_that_is_not_utf_8_is_named() -> None:
    with pytest.raises(InvalidRequest, match="the body is not UTF-8: byte 0xFC at 15; encode it as UTF-8"):
        from_json(ASKED.encode("latin-1"), dict)


def test_a_byte_order_mark_is_ignored() -> None:
    assert from_json(b"\xef\xbb\xbf" + ASKED.encode(), dict) == json.loads(ASKED)
    contents = b'\xef\xbb\xbf{"contents": ["a"]}'
    assert message_from_json(contents, Asked).contents == ["a"]


@pytest.mark.parametrize("half", [r"\ud83d", r"\uDE00", r"\ud83d\ud83d\ude00", r"\ud83d \ude00"])
def test_half_an_emoji_is_told_with_its_place(half: str) -> None:
    for body in (rf'{{"contents": ["secret", "a {half}"]}}', rf'{{"contents": {{"x": "a {half}"}}, "q": "secret"}}'):
        for read in (lambda raw: from_json(raw, dict), lambda raw: message_from_json(raw, Asked)):
            with pytest.raises(InvalidRequest, match=r"^contents[\[.]\S+ has half of a surrogate pair, .ud") as told:
                read(body.encode())
            assert "secret" not in str(told.value)
    assert from_json(rb'["\ud83d\ude00"]', list) == ["\U0001f600"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("null", "null"), ("1", "1"), ("true", "true"), ('{"a": "secret"}', "an object"), ('["secret"]', "a list")],
)
def test_an_item_that_is_no_text_is_told_in_json_s_words(wrong: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as told:
        texts_of(from_json(f'{{"q": ["secret", {wrong}], "target": "de"}}'.encode(), TranslateBody).q)
    assert str(told.value) == f"q[1] is {said}; allowed: a text."
    with pytest.raises(InvalidRequest) as told:
        message_from_json(f'{{"contents": ["secret", {wrong}]}}'.encode(), Asked)
    assert str(told.value) == f"contents[1] is {said}; allowed: a string."


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"contents": "secret"}', "contents is 'secret'; allowed: a list."),
        (b'{"mimeType": {"a": 1}}', "mimeType is an object; allowed: a string."),
        (b'{"glossaryConfig": {"ignoreCase": "x"}}', "glossaryConfig.ignoreCase is 'x'; allowed: true or false."),
        (b'{"labels": {"a": "secret", "b": null}}', "labels.b is null; allowed: a string."),
        (b'{"labels": ["secret"]}', "labels is a list; allowed: an object."),
        (b'{"glossaryConfig": [1]}', "glossaryConfig is a list; allowed: an object."),
    ],
)
def test_a_field_of_a_message_of_another_kind_is_named(body: bytes, problem: str) -> None:
    with pytest.raises(InvalidRequest) as told:
        message_from_json(body, Asked)
    assert str(told.value) == problem


def test_a_body_looks_like_json_by_its_beginning() -> None:
    assert all(map(looks_like_json, (b"{", b" \r\n\t[", b"\xef\xbb\xbf{}")))
    assert not any(map(looks_like_json, (b"", b"q={", b'"a"', b"\xef\xbb{")))
    assert shown_as_json(10**5000) == "a number of thousands of digits"


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
    with pytest.raises(TooMany, match=r"the body has \d+ values in its lists and objects; allowed: 16384"):
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


@pytest.mark.parametrize(
    "body",
    [
        b'{"contents": ["a"], "targetLanguageCode": "de", "glossaryConfig": {"ignoreCase": true}}',
        b'{"contents": ["a"], "target_language_code": "de", "glossary_config": {"ignore_case": true}}',
        b'{"contents": ["a"], "targetLanguageCode": "de", "mimeType": null, "glossaryConfig": {"ignoreCase": true}}',
    ],
)
def test_names_are_in_camel_case_or_as_in_the_proto(body: bytes) -> None:
    message = message_from_json(body, Asked)
    assert message == Asked(contents=["a"], target_language_code="de", glossary_config={"ignore_case": True})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"contents"',
        b"[" * 10_000,
        b'{"contents": ' + b"[" * 10_000,
        b"1" * 5000,
        b'{"glossaryConfig": {"tone": 1}}',
    ],
)
def test_what_is_no_such_message_is_refused_in_one_line(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"^the body is not a TranslateTextRequest in JSON: ") as raised:
        message_from_json(body, Asked)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_an_unknown_field_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidRequest, match=r"^tone is unknown; allowed: contents, ") as raised:
        message_of({"contents": ["a"], "tone": 1}, Asked)
    assert raised.value.field == "tone"
    with pytest.raises(InvalidRequest) as raised:
        message_of({"x" * 10_000: 1}, Asked)
    assert len(str(raised.value)) < 400


def test_a_field_in_both_spellings_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^mime_type is given twice; give it once\.$"):
        message_of({"mimeType": "text/html", "mime_type": "text/plain"}, Asked)


def test_a_query_is_called_a_query() -> None:
    with pytest.raises(InvalidRequest, match=r"^the query is not a ListGlossariesRequest in JSON: .*pageSize"):
        message_of({"pageSize": "many"}, pb.ListGlossariesRequest, "query")
    assert message_of({"pageSize": "12"}, pb.ListGlossariesRequest).page_size == 12
