"""Checks of DeepL's own client, which test_foreign_clients.py runs with a Python that has none of our code."""

import io
import json
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import deepl
from deepl.api_data import MultilingualGlossaryDictionaryEntries

SETTINGS = json.loads(sys.argv[1])
KEYED = SETTINGS["keyed_url"]  # a server that asks for keys
EXPECTED = SETTINGS["expected"]  # text -> translation
TEXTS = list(EXPECTED)
PAIR = {"source_lang": "EN", "target_lang": "DE"}

client = deepl.DeepLClient("any", server_url=SETTINGS["url"])
keyed = deepl.DeepLClient(SETTINGS["key"], server_url=KEYED)
limited = deepl.DeepLClient(SETTINGS["limited_key"], server_url=KEYED)  # may use one token a minute


def refused(call: Callable[[], Any], kind: Any = deepl.DeepLException) -> tuple[int, str]:
    """Return the status and the message of a call that must fail with exactly this kind of exception."""
    try:
        answer = call()
    except deepl.DeepLException as error:
        if type(error) is not kind:
            raise AssertionError(f"expected {kind}") from error
        return error.http_status_code, str(error)
    raise AssertionError(f"it was answered: {answer}")


def check_texts() -> None:
    for text, expected in EXPECTED.items():
        result = client.translate_text(text, **PAIR)
        assert (result.text, result.detected_source_lang) == (expected, "EN")
        assert result.billed_characters == len(text)
    several = client.translate_text(TEXTS, source_lang="en", target_lang="de")
    assert [each.text for each in several] == list(EXPECTED.values())
    detected = client.translate_text(["Where is the next train station, please?", "123"], target_lang="DE")
    assert [each.detected_source_lang for each in detected] == ["EN", "EN"]
    assert detected[1].text == "123"


def check_xml() -> None:
    text = '<doc><title>station</title><br>window <x id="1"/> file<keep>close &amp; help</keep></br></doc>'
    options = {"tag_handling": "xml", "ignore_tags": ["keep", "other"], "splitting_tags": ["title", "br"]}
    result = client.translate_text(text, **PAIR, **options, outline_detection=False).text
    assert result.startswith("<doc><title>")
    assert "<keep>close &amp; help</keep>" in result


def check_a_glossary_of_the_operator() -> None:
    [listed] = [each for each in client.list_glossaries() if each.name == "files"]
    assert (listed.source_lang, listed.target_lang, listed.entry_count, listed.ready) == ("EN", "DE", 2, True)
    assert (datetime.now(UTC) - listed.creation_time).total_seconds() < 24 * 3600
    found = client.get_glossary(listed.glossary_id)
    assert (found.name, found.creation_time) == (listed.name, listed.creation_time)
    assert client.get_glossary_entries(listed) == {"file": "Akte", "Dragoman": "Dragoman"}
    for glossary in (listed, listed.glossary_id):
        assert "Akte" in client.translate_text("Save the file.", **PAIR, glossary=glossary).text
    assert "Akte" in client.translate_text_with_glossary("the file", listed).text
    assert "Akte" in client.translate_text("the file", **PAIR, glossary_ids=[listed]).text
    assert refused(lambda: client.get_glossary(str(UUID(int=0))), deepl.GlossaryNotFoundException)[0] == 404


def check_a_glossary_of_several_languages() -> None:
    [found] = [each for each in client.list_multilingual_glossaries() if each.name == "several"]
    assert found.glossary_id not in {each.glossary_id for each in client.list_glossaries()}
    assert client.get_multilingual_glossary(found.glossary_id).creation_time == found.creation_time
    pairs = {(each.source_lang, each.target_lang, each.entry_count) for each in found.dictionaries}
    assert pairs == {("FR", "IT", 1), ("IT", "FR", 1)}
    [entries] = client.get_multilingual_glossary_entries(found, "FR", "IT").dictionaries
    assert entries.entries == "station\tBahnsteig"
    for text, source, target, expected in (("station", "FR", "IT", "Bahnsteig"), ("Bahnsteig", "IT", "FR", "platform")):
        answer = client.translate_text(text, source_lang=source, target_lang=target, glossary=found)
        assert expected in answer.text


def check_glossaries_can_not_be_changed() -> None:
    [files] = [each for each in client.list_glossaries() if each.name == "files"]
    dictionary = MultilingualGlossaryDictionaryEntries("EN", "DE", {"a": "b"})
    calls: list[Callable[[], Any]] = [
        lambda: client.create_glossary("No", "EN", "DE", {"a": "b"}),
        lambda: client.delete_glossary(files),
        lambda: client.create_multilingual_glossary("No", [dictionary]),
        lambda: client.update_multilingual_glossary_name(files.glossary_id, "No"),
        lambda: client.replace_multilingual_glossary_dictionary(files.glossary_id, dictionary),
        lambda: client.delete_multilingual_glossary(files.glossary_id),
    ]
    for call in calls:
        status, message = refused(call)
        assert status == 400
        assert "callers can't change this server's glossaries" in message


def check_languages() -> None:
    sources = {each.code: each.name for each in keyed.get_source_languages()}
    assert sources == {"EN": "English"}
    targets = client.get_target_languages()
    assert [each.code for each in targets] == ["DE", "ES", "FR", "IT", "PT-BR", "PT-PT"]
    assert not any(each.supports_formality for each in targets)
    pairs = {(each.source_lang, each.target_lang) for each in keyed.get_glossary_languages()}
    assert pairs == {("en", "de")}


def check_keys_and_quotas() -> None:
    assert keyed.translate_text(TEXTS[0], **PAIR).text
    wrong = deepl.DeepLClient("dgm_wrong:fx", server_url=KEYED)
    assert refused(partial(wrong.translate_text, "a", **PAIR), deepl.AuthorizationException)[0] == 403
    limited.translate_text("station", **PAIR)
    status, message = refused(lambda: limited.translate_text("station", **PAIR), deepl.QuotaExceededException)
    assert (status, "1 token per minute" in message) == (456, True)
    assert limited.get_usage().any_limit_reached
    assert client.get_usage().character.limit == 10**12


def check_documents() -> None:
    text, output = TEXTS[0], io.BytesIO()
    status = client.translate_document(f"{text}\n".encode(), output, filename="a.txt", **PAIR)
    assert (status.done, status.ok, status.billed_characters) == (True, True, len(text))
    assert output.getvalue().decode() == f"{EXPECTED[text]}\n"
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "ä.txt", Path(folder) / "ü.txt"
        source.write_text(f"{text}\n", encoding="utf-8")
        keyed.translate_document_from_filepath(source, target, **PAIR)
        assert target.read_text(encoding="utf-8") == f"{EXPECTED[text]}\n"
    document = partial(client.translate_document, b"a\n", io.BytesIO(), filename="a.docx", **PAIR)
    assert "file can't be read" in refused(document, deepl.DocumentTranslationException)[1]
