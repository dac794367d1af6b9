"""Messages from protobuf's JSON."""

import pytest

from service.domain.errors import InvalidRequest
from service.faces.grpc.json_messages import message_from_json, message_of
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb

Asked = pb.TranslateTextRequest


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
    with pytest.raises(InvalidRequest, match=r"^tone is unknown; allowed are contents, ") as raised:
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
