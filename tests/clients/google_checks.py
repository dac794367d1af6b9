"""Checks of google-cloud-translate over gRPC. See test_foreign_clients.py."""

import asyncio
import inspect
import itertools
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from descriptors import differences, file_of  # type: ignore[import-not-found]  # beside this module
from google.api_core import exceptions
from google.cloud.translate_v3 import TranslateTextRequest, TranslationServiceAsyncClient, TranslationServiceClient
from google.cloud.translate_v3.services.translation_service import transports
from google.rpc import error_details_pb2

SETTINGS = json.loads(sys.argv[1])
SECONDS = SETTINGS["seconds"]
PARENT = "projects/any/locations/global"
GLOSSARIES = f"{PARENT}/glossaries"
GOOD: dict[str, Any] = {
    "parent": PARENT,
    "contents": ["Hello"],
    "mime_type": "text/plain",
    "source_language_code": "en",
    "target_language_code": "de",
}
WORDS = ("station", "file", "window", "keys")
MANY = [" ".join(chosen) for chosen in itertools.product(WORDS, repeat=5)]  # the tiny model needs a second or more
SUPPORTED = {
    "translate_text",
    "detect_language",
    "get_supported_languages",
    "list_glossaries",
    "get_glossary",
    "get_glossary_entry",
    "list_glossary_entries",
}

client = TranslationServiceClient(
    transport=transports.TranslationServiceGrpcTransport(channel=grpc.insecure_channel(SETTINGS["address"]))
)


def translated(**changes: Any) -> list[str]:
    answer = client.translate_text(request=GOOD | changes, timeout=SECONDS)
    return [each.translated_text for each in answer.translations]


def fails(kind: type[exceptions.GoogleAPICallError], call: Callable[[], Any]) -> Any:
    with pytest.raises(kind) as raised:
        call()
    return raised.value


def detail(error: Any, kind: Any) -> Any:
    """Return the details of one type."""
    return next(each for each in error.details if isinstance(each, kind))


def check_texts_come_back_translated_in_their_order() -> None:
    texts = ["Where is the train station?", "", "Save the file.", " \n"]
    together = translated(contents=texts)
    assert together == [translated(contents=[text])[0] for text in texts]
    assert together[1::2] == texts[1::2]
    assert len(set(together)) == len(texts)
    model = f"{PARENT}/models/tiny"
    by_arguments = client.translate_text(**GOOD | {"contents": texts}, model=model).translations
    assert [(each.translated_text, each.model) for each in by_arguments] == [(text, model) for text in together]


def check_what_is_wrong_is_named() -> None:
    error = fails(exceptions.InvalidArgument, lambda: translated(contents=["a"] * 1025))
    assert detail(error, error_details_pb2.BadRequest).field_violations[0].field == "contents"
    assert (error.domain, error.reason) == ("dragoman", "TOO_MANY")
    error = fails(exceptions.NotFound, lambda: translated(model=f"{PARENT}/models/huge"))
    assert detail(error, error_details_pb2.ResourceInfo).resource_name == f"{PARENT}/models/huge"
    fails(exceptions.DeadlineExceeded, lambda: client.translate_text(request=GOOD | {"contents": MANY}, timeout=0.05))


def check_how_a_translation_ended_is_in_the_trailers() -> None:
    """The tiny model continues until it is stopped; only the client's transport returns trailers."""
    translate_text: Any = client.transport.translate_text
    request = TranslateTextRequest(GOOD | {"contents": ["", "Hello", "", "Help"]})
    _, call = translate_text.with_call(request, timeout=SECONDS)
    trailers = dict(call.trailing_metadata())
    assert trailers["dragoman-finish-reasons"] == "ratio=1,3"
    assert trailers["x-request-id"]


def check_languages() -> None:
    answer = client.detect_language(parent=PARENT, content="Where is the train station?", mime_type="text/plain")
    assert [each.language_code for each in answer.languages] == ["en"]
    assert 0.0 < answer.languages[0].confidence <= 1.0
    asked = {"parent": PARENT, "display_language_code": "de", "model": f"{PARENT}/models/tiny"}
    languages = client.get_supported_languages(request=asked).languages
    found = [(each.language_code, each.display_name, each.support_source, each.support_target) for each in languages]
    assert found == [("de", "Deutsch", False, True), ("en", "Englisch", True, False)]


def check_every_other_call_says_what_there_is_instead() -> None:
    others = [
        name
        for name, member in inspect.getmembers(TranslationServiceClient, inspect.isfunction)
        if "request" in inspect.signature(member).parameters and not name.startswith("_") and name not in SUPPORTED
    ]
    assert len(others) >= 38
    assert {"create_glossary", "romanize_text", "list_locations", "get_operation"} <= set(others)
    for name in others:
        error = fails(exceptions.MethodNotImplemented, partial(getattr(client, name), request={}))
        method = "".join(word.capitalize() for word in name.split("_"))
        assert error.message.startswith(f"{method} is not supported by this server; ")
        assert error.reason == "UNIMPLEMENTED"


def check_glossaries() -> None:
    found = list(client.list_glossaries(parent=PARENT))
    ids = ["files.en-de", "long.en-de", "several.fr-it", "several.it-fr"]
    assert [each.name for each in found] == [f"{GLOSSARIES}/{name}" for name in ids]
    assert [each.entry_count for each in found] == [2, 2500, 1, 1]
    (pair,) = client.list_glossaries(request={"parent": PARENT, "filter": "src=fr AND tgt=it"})
    assert pair.name == f"{GLOSSARIES}/several.fr-it"
    pages = client.list_glossaries(request={"parent": PARENT, "page_size": 3}).pages
    assert [len(page.glossaries) for page in pages] == [3, 1]
    assert client.get_glossary(name=found[0].name) == found[0]
    error = fails(exceptions.NotFound, lambda: client.get_glossary(name=f"{GLOSSARIES}/none"))
    assert detail(error, error_details_pb2.ResourceInfo).resource_name == f"{GLOSSARIES}/none"


def check_entries_of_glossaries() -> None:
    assert len(list(client.list_glossary_entries(parent=f"{GLOSSARIES}/long"))) == 2500  # of three pages
    first, second = client.list_glossary_entries(parent=f"{GLOSSARIES}/files.en-de")
    assert (first.terms_pair.source_term.text, first.terms_pair.target_term.text) == ("file", "Akte")
    assert client.get_glossary_entry(name=second.name) == second


def check_a_translation_comes_without_the_glossary_and_with_it() -> None:
    asked = GOOD | {"contents": ["Save the file.", "Save the FILE."]}
    config = {"glossary": f"{GLOSSARIES}/files.en-de", "ignore_case": True}
    both = client.translate_text(request=asked | {"glossary_config": config})
    assert both.translations == client.translate_text(request=asked).translations
    assert all("akte" in each.translated_text.lower() for each in both.glossary_translations)


def check_asyncio() -> None:
    async def scenario() -> None:
        async with grpc.aio.insecure_channel(SETTINGS["address"]) as channel:
            transport = transports.TranslationServiceGrpcAsyncIOTransport(channel=channel)
            each = TranslationServiceAsyncClient(transport=transport)
            texts = ["Hello", "Save the file.", "Where is the train station?", ""]
            answers = await asyncio.gather(
                *(each.translate_text(request=GOOD | {"contents": [text]}) for text in texts * 4)
            )
            assert [answer.translations[0].translated_text for answer in answers] == translated(contents=texts) * 4
            call = asyncio.ensure_future(each.translate_text(request=GOOD | {"contents": MANY}))
            await each.translate_text(request=GOOD)  # takes turns with the many texts, so they have begun
            call.cancel()
            await asyncio.wait({call})
            assert call.cancelled()

    asyncio.run(asyncio.wait_for(scenario(), SECONDS))


def check_every_field_is_googles() -> None:
    file = file_of(Path(SETTINGS["descriptors"], "google.pb"))
    assert file.message_type
    assert differences(file) == []
