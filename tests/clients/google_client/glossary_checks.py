"""Glossaries through Google's client."""

import os
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.translate_v3 import TranslationServiceClient as Client
from google.rpc import error_details_pb2

PARENT = "projects/any/locations/global"
GLOSSARY = f"{PARENT}/glossaries/files.en-de"
IDS = ["files.en-de", "files.en-pt_BR", "long.en-de"]


def test_a_list(client: Client) -> None:
    found = list(client.list_glossaries(parent=PARENT))
    assert [each.name for each in found] == [f"{PARENT}/glossaries/{name}" for name in IDS]
    assert [each.display_name for each in found] == ["files", "files", "long"]
    assert [each.entry_count for each in found] == [2, 1, 2500]
    pair = found[1].language_pair
    assert (pair.source_language_code, pair.target_language_code) == ("en", "pt-BR")
    shorter = list(client.list_glossaries(parent="projects/any"))
    assert [each.name for each in shorter] == [each.name for each in found]


def test_a_list_of_some(client: Client) -> None:
    found = client.list_glossaries(request={"parent": PARENT, "filter": "src=en AND tgt=pt-BR"})
    assert [each.name for each in found] == [f"{PARENT}/glossaries/files.en-pt_BR"]


def test_pages(client: Client) -> None:
    pages = list(client.list_glossaries(request={"parent": PARENT, "page_size": 2}).pages)
    assert [[each.name.rpartition("/")[2] for each in page.glossaries] for page in pages] == [IDS[:2], IDS[2:]]
    entries = client.list_glossary_entries(parent=f"{PARENT}/glossaries/long")
    assert [len(page.glossary_entries) for page in entries.pages] == [1000, 1000, 500]
    again = client.list_glossary_entries(parent=f"{PARENT}/glossaries/long")
    assert [entry.terms_pair.source_term.text for entry in again] == [f"term {number}" for number in range(2500)]


def test_one_glossary_and_one_entry(client: Client) -> None:
    found = client.get_glossary(name=GLOSSARY)
    assert (found.name, found.entry_count) == (GLOSSARY, 2)
    first, second = client.list_glossary_entries(parent=GLOSSARY)
    assert (first.terms_pair.source_term.text, first.terms_pair.target_term.text) == ("file", "Akte")
    assert (first.terms_pair.source_term.language_code, first.terms_pair.target_term.language_code) == ("en", "de")
    assert (second.terms_pair.source_term.text, second.terms_pair.target_term.text) == ("Dragoman", "Dragoman")
    assert client.get_glossary_entry(name=second.name) == second


ASKED: dict[str, Any] = {
    "parent": PARENT,
    "contents": ["Save the file.", "", "Hello"],
    "mime_type": "text/plain",
    "source_language_code": "en",
    "target_language_code": "de",
    "model": f"{PARENT}/models/tiny",
}


@pytest.mark.parametrize("name", [GLOSSARY, f"{PARENT}/glossaries/files"])
def test_a_translation_comes_without_the_glossary_and_with_it(client: Client, name: str) -> None:
    config = {"glossary": name, "ignore_case": True}
    plain = client.translate_text(request=ASKED)
    both = client.translate_text(request=ASKED | {"glossary_config": config})
    assert both.translations == plain.translations
    assert len(both.glossary_translations) == 3
    for each in both.glossary_translations:
        assert each.model == ASKED["model"]
        assert (each.glossary_config.glossary, each.glossary_config.ignore_case) == (name, True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"glossary_config": {"glossary": f"{PARENT}/glossaries/files.en-pt_BR"}}, "glossary_config.glossary"),
        ({"glossary_config": {"glossary": GLOSSARY}, "source_language_code": ""}, "source_language_code"),
        ({"glossary_config": {"glossary": GLOSSARY}, "contents": ["a"] * 1025}, "contents"),
    ],
)
def test_a_glossary_must_fit_the_call(client: Client, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(exceptions.InvalidArgument) as raised:
        client.translate_text(request=ASKED | changes)
    violations: Any = raised.value.details[0]
    assert violations.field_violations[0].field == field


INVALID, MISSING = exceptions.InvalidArgument, exceptions.NotFound
NONE = f"{PARENT}/glossaries/none"
ENTRY = f"{GLOSSARY}/glossaryEntries"


@pytest.mark.parametrize(
    ("call", "changes", "kind", "what"),
    [
        ("get_glossary", {"name": NONE}, MISSING, NONE),
        ("get_glossary", {"name": "files"}, INVALID, "name"),
        ("get_glossary_entry", {"name": f"{ENTRY}/3"}, MISSING, f"{ENTRY}/3"),
        ("list_glossary_entries", {"parent": NONE}, MISSING, NONE),
        ("list_glossary_entries", {"parent": GLOSSARY, "page_token": "x"}, INVALID, "page_token"),
        ("list_glossary_entries", {"parent": GLOSSARY, "page_size": -1}, INVALID, "page_size"),
        ("list_glossaries", {"parent": PARENT, "filter": "en"}, INVALID, "filter"),
    ],
)
def test_what_is_wrong_is_named(
    client: Client, call: str, changes: dict[str, Any], kind: type[Exception], what: str
) -> None:
    with pytest.raises(kind) as raised:
        getattr(client, call)(request=changes)
    error: Any = raised.value
    (named,) = [
        detail.field_violations[0].field if isinstance(detail, error_details_pb2.BadRequest) else detail.resource_name
        for detail in error.details
        if isinstance(detail, (error_details_pb2.BadRequest, error_details_pb2.ResourceInfo))
    ]
    assert named == what
    assert "\n" not in error.message


def test_an_overloaded_server_says_when_to_come_back(client: Client, many: list[str]) -> None:
    """The server has room for 64 texts, of which it decodes one at a time."""
    calls = [
        client.transport.translate_text.future(
            ASKED | {"contents": many[40 * call : 40 * call + 40]}, timeout=float(os.environ["TIMEOUT_SECONDS"])
        )
        for call in range(4)
    ]
    errors = [exceptions.from_grpc_error(call.exception()) for call in calls if call.exception() is not None]
    assert 0 < len(errors) < len(calls)
    for error in errors:
        assert isinstance(error, exceptions.ResourceExhausted)
        (retry,) = [detail for detail in error.details if isinstance(detail, error_details_pb2.RetryInfo)]
        assert retry.retry_delay.ToMilliseconds() > 0
        assert error.reason == "QUEUE_FULL"


def test_the_glossarys_terms_are_in_the_translation(client: Client) -> None:
    both = client.translate_text(request=ASKED | {"glossary_config": {"glossary": GLOSSARY}})
    assert "Akte" in both.glossary_translations[0].translated_text
    shout = ASKED | {"contents": ["Save the FILE."]}
    config = {"glossary": GLOSSARY, "ignore_case": True}
    answer = client.translate_text(request=shout | {"glossary_config": config})
    assert "akte" in answer.glossary_translations[0].translated_text.lower()
