"""Google's client, as its users call it."""

import inspect
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud.translate_v3 import TranslateTextRequest
from google.cloud.translate_v3 import TranslationServiceClient as Client
from google.rpc import error_details_pb2

PARENT = "projects/any/locations/global"
GOOD: dict[str, Any] = {
    "parent": PARENT,
    "contents": ["Hello"],
    "mime_type": "text/plain",
    "source_language_code": "en",
    "target_language_code": "de",
}
SUPPORTED = {
    "translate_text",
    "detect_language",
    "get_supported_languages",
    "list_glossaries",
    "get_glossary",
    "get_glossary_entry",
    "list_glossary_entries",
}
UNSUPPORTED = sorted(
    name
    for name, member in inspect.getmembers(Client, inspect.isfunction)
    if "request" in inspect.signature(member).parameters and not name.startswith("_") and name not in SUPPORTED
)


def test_texts_come_back_translated_in_their_order(client: Client) -> None:
    texts = ["Where is the train station?", "", "Save the file.", " \n"]
    answer = client.translate_text(request=GOOD | {"contents": texts})
    together = [each.translated_text for each in answer.translations]
    alone = [
        client.translate_text(request=GOOD | {"contents": [text]}).translations[0].translated_text for text in texts
    ]
    assert together == alone
    assert together[1::2] == texts[1::2]
    assert len(set(together)) == len(texts)
    assert not answer.glossary_translations
    for each in answer.translations:
        assert (each.model, each.detected_language_code, each.glossary_config.glossary) == ("", "", "")


def test_arguments_instead_of_a_request(client: Client) -> None:
    answer = client.translate_text(
        parent=PARENT,
        contents=["Hello"],
        mime_type="text/plain",
        source_language_code="en",
        target_language_code="de",
        model=f"{PARENT}/models/tiny",
    )
    assert answer.translations[0].translated_text


@pytest.mark.parametrize("parent", ["projects/1", "projects/a/locations/us-central1", "projects/-/locations/-"])
@pytest.mark.parametrize("model", ["tiny", "general/nmt"])
def test_a_model_is_echoed_as_it_was_asked_for(client: Client, parent: str, model: str) -> None:
    name = f"{parent}/models/{model}"
    answer = client.translate_text(request=GOOD | {"parent": parent, "model": name})
    assert answer.translations[0].model == name
    assert answer.translations[0].translated_text == client.translate_text(request=GOOD).translations[0].translated_text


@pytest.mark.parametrize("mime_type", ["", "text/html", "text/plain"])
def test_mime_types(client: Client, mime_type: str) -> None:
    assert client.translate_text(request=GOOD | {"mime_type": mime_type}).translations[0].translated_text


def test_a_source_language_that_is_left_out_is_detected(client: Client) -> None:
    texts = ["Where is the train station?", "123", ""]
    answer = client.translate_text(request=GOOD | {"contents": texts, "source_language_code": ""})
    assert [each.detected_language_code for each in answer.translations] == ["en", "und", "und"]
    given = client.translate_text(request=GOOD | {"contents": texts[:1]})
    assert answer.translations[0].translated_text == given.translations[0].translated_text
    assert [each.translated_text for each in answer.translations][1:] == texts[1:]


INVALID, MISSING = exceptions.InvalidArgument, exceptions.NotFound


@pytest.mark.parametrize(
    ("changes", "kind", "what"),
    [
        ({"contents": []}, INVALID, "contents"),
        ({"contents": ["a"] * 1025}, INVALID, "contents"),
        ({"target_language_code": ""}, INVALID, "target_language_code"),
        ({"source_language_code": "fr"}, INVALID, "source_language_code"),
        ({"source_language_code": "", "contents": ["Hello", "Где вокзал?"]}, INVALID, "contents[1]"),
        ({"parent": ""}, INVALID, "parent"),
        ({"model": "tiny"}, INVALID, "model"),
        ({"model": f"{PARENT}/models/huge"}, MISSING, f"{PARENT}/models/huge"),
        ({"mime_type": "text/rtf"}, INVALID, "mime_type"),
        ({"labels": {"team": "a b"}}, INVALID, "labels[team]"),
        ({"glossary_config": {"glossary": "terms"}}, INVALID, "glossary_config.glossary"),
        ({"glossary_config": {"glossary": f"{PARENT}/glossaries/terms"}}, MISSING, f"{PARENT}/glossaries/terms"),
    ],
)
def test_what_is_wrong_is_named(client: Client, changes: dict[str, Any], kind: type[Exception], what: str) -> None:
    with pytest.raises(kind) as raised:
        client.translate_text(request=GOOD | changes)
    assert named(raised.value) == what
    error: Any = raised.value
    assert error.domain == "dragoman"
    assert error.reason in ("INVALID", "TOO_MANY", "NOT_FOUND")
    assert "\n" not in error.message


def named(error: Any) -> str:
    """Return the field or the resource that an error's details name."""
    for detail in error.details:
        if isinstance(detail, error_details_pb2.BadRequest):
            return str(detail.field_violations[0].field)
        if isinstance(detail, error_details_pb2.ResourceInfo):
            return str(detail.resource_name)
    return ""


def test_more_than_4_mib(client: Client) -> None:
    with pytest.raises(exceptions.ResourceExhausted) as raised:
        client.translate_text(request=GOOD | {"contents": ["x" * (5 << 20)]})
    assert not raised.value.details  # no RetryInfo: retrying will not help


@pytest.mark.parametrize(
    "changes",
    [
        {"transliteration_config": {"enable_transliteration": True}},
        {"glossary_config": {"glossary": f"{PARENT}/glossaries/terms", "contextual_translation_enabled": True}},
    ],
)
def test_options_that_are_not_supported_are_not_passed_over(client: Client, changes: dict[str, Any]) -> None:
    with pytest.raises(exceptions.MethodNotImplemented) as raised:
        client.translate_text(request=GOOD | changes)
    assert next(iter(changes)) in raised.value.message


def test_a_deadline(client: Client, many: list[str]) -> None:
    with pytest.raises(exceptions.DeadlineExceeded):
        client.translate_text(request=GOOD | {"contents": many}, timeout=0.05)
    assert client.translate_text(request=GOOD).translations


def test_how_a_translation_ended_is_in_the_trailers(client: Client) -> None:
    """The tiny model continues until it is stopped."""
    answered = trailers(client, ["", "Hello", "", "Help"])
    assert answered["dragoman-finish-reasons"] == "ratio=1,3"
    assert answered["x-request-id"]
    assert "dragoman-finish-reasons" not in trailers(client, [""])
    many = trailers(client, ["Hello"] * 1024)["dragoman-finish-reasons"]
    assert many == f"ratio={','.join(map(str, range(1024)))}"


def trailers(client: Client, contents: list[str]) -> dict[str, Any]:
    """Return a call's trailers, which the client's methods hide and its transport returns."""
    request = TranslateTextRequest(GOOD | {"contents": contents})
    translate_text: Any = client.transport.translate_text
    _, call = translate_text.with_call(request, timeout=30)
    return dict(call.trailing_metadata())


def test_a_language_is_detected(client: Client) -> None:
    answer = client.detect_language(parent=PARENT, content="Where is the train station?", mime_type="text/plain")
    assert [each.language_code for each in answer.languages] == ["en"]
    assert 0.0 < answer.languages[0].confidence <= 1.0
    answer = client.detect_language(
        request={"parent": PARENT, "content": "123", "model": f"{PARENT}/models/language-detection/default"}
    )
    assert [(each.language_code, each.confidence) for each in answer.languages] == [("und", 0.0)]


def test_what_is_wrong_with_other_calls_is_named(client: Client) -> None:
    with pytest.raises(INVALID) as raised:
        client.detect_language(request={"parent": PARENT})
    assert named(raised.value) == "content"
    with pytest.raises(INVALID) as raised:
        client.get_supported_languages(request={"parent": PARENT, "display_language_code": "d!"})
    assert named(raised.value) == "display_language_code"


def test_the_languages(client: Client) -> None:
    answer = client.get_supported_languages(parent=PARENT)
    found = [
        (each.language_code, each.display_name, each.support_source, each.support_target) for each in answer.languages
    ]
    assert found == [("de", "", False, True), ("en", "", True, False)]
    for display, names in {"en": ["German", "English"], "de": ["Deutsch", "Englisch"]}.items():
        answer = client.get_supported_languages(
            parent="projects/any", model=f"{PARENT}/models/tiny", display_language_code=display
        )
        assert [each.display_name for each in answer.languages] == names
    assert client.get_supported_languages(parent=PARENT, model=f"{PARENT}/models/general/nmt").languages


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_every_other_call_says_what_there_is_instead(client: Client, name: str) -> None:
    with pytest.raises(exceptions.MethodNotImplemented) as raised:
        getattr(client, name)(request={}, timeout=30)
    method = "".join(word.capitalize() for word in name.split("_"))
    assert raised.value.message.startswith(f"{method} is not supported by this server; ")
    assert raised.value.reason == "UNIMPLEMENTED"


def test_the_client_has_other_calls() -> None:
    assert len(UNSUPPORTED) >= 38
    assert {"create_glossary", "romanize_text", "list_locations", "get_operation"} <= set(UNSUPPORTED)


def test_a_method_that_google_has_not_either(address: str) -> None:
    method = "/google.cloud.translation.v3.TranslationService/Nope"
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary(method, bytes, bytes)(b"", timeout=30)
    error: Any = raised.value
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


def test_html_is_what_a_client_sends_that_says_nothing(client: Client) -> None:
    asked = GOOD | {"mime_type": "", "contents": ['<p class="a">Hello</p><script>x()</script>']}
    text = client.translate_text(request=asked).translations[0].translated_text
    assert text.startswith('<p class="a">')
    assert text.endswith("</p><script>x()</script>")
