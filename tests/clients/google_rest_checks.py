"""Checks of google-cloud-translate over HTTP: v3 by its REST transport, and v2. See test_foreign_clients.py."""

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from google.api_core import exceptions
from google.auth.api_key import Credentials as ApiKey
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import InvalidOperation
from google.cloud import translate_v2, translate_v3
from google.cloud.translate_v3.services.translation_service import transports

SETTINGS = json.loads(sys.argv[1])
SECONDS: float = SETTINGS["seconds"]
PARENT = "projects/any project/locations/global"
GLOSSARY = f"{PARENT}/glossaries/files.en-de"
TEXTS = ["Where is the train station?", "Save the file."]
TRANSLATIONS = [SETTINGS["expected"][text] for text in TEXTS]
GOOD: dict[str, Any] = {
    "parent": PARENT,
    "contents": TEXTS,
    "mime_type": "text/plain",
    "source_language_code": "en",
    "target_language_code": "de",
}


def credentials(key: str) -> Any:
    """Return what the clients send the key by, if there is one."""
    kinds: Any = (ApiKey, AnonymousCredentials)  # without types
    return kinds[0](key) if key else kinds[1]()


def v3(url: str = SETTINGS["url"], key: str = "") -> translate_v3.TranslationServiceClient:
    """Return a client of v3 over REST."""
    transport = transports.TranslationServiceRestTransport(
        host=urlsplit(url).netloc, url_scheme="http", credentials=credentials(key)
    )
    return translate_v3.TranslationServiceClient(transport=transport)


def v2(url: str = SETTINGS["url"], key: str = "") -> translate_v2.Client:
    """Return a client of v2."""
    return translate_v2.Client(client_options={"api_endpoint": url}, credentials=credentials(key))


def raised(kind: type[Exception], call: Callable[[], Any]) -> Any:
    """Return the error that a call must raise."""
    try:
        answer = call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} but {answer!r:.200}")


def check_v3_translates() -> None:
    answer = v3().translate_text(request=GOOD, timeout=SECONDS)
    assert [each.translated_text for each in answer.translations] == TRANSLATIONS
    assert {(each.model, each.detected_language_code) for each in answer.translations} == {("", "")}


def check_v3_detects_and_lists_languages() -> None:
    asked = {"parent": PARENT, "content": "Where is the train station?", "mime_type": "text/plain"}
    assert [each.language_code for each in v3().detect_language(request=asked).languages] == ["en"]
    languages = v3().get_supported_languages(request={"parent": PARENT}, timeout=SECONDS).languages
    assert {"de", "en"} <= {each.language_code for each in languages}


def check_v3_glossaries() -> None:
    client = v3()
    found = list(client.list_glossaries(request={"parent": PARENT, "page_size": 1}, timeout=SECONDS))
    assert len(found) == 4
    assert client.get_glossary(name=GLOSSARY, timeout=SECONDS) == found[0]
    answer = v3().translate_text(request=GOOD | {"glossary_config": {"glossary": GLOSSARY}}, timeout=SECONDS)
    assert [each.translated_text for each in answer.translations] == TRANSLATIONS
    assert "Akte" in answer.glossary_translations[1].translated_text


def check_v3_keys() -> None:
    url = SETTINGS["keyed_url"]
    error = raised(exceptions.Unauthorized, lambda: v3(url, "dgm_wrong").translate_text(request=GOOD))
    assert error.reason == "UNAUTHENTICATED"
    raised(InvalidOperation, lambda: v3(url).translate_text(request=GOOD))  # the client would renew what it lacks
    assert v3(url, SETTINGS["key"]).translate_text(request=GOOD, timeout=SECONDS).translations
    answer = v3(url).translate_text(request=GOOD, timeout=SECONDS, metadata=[("x-api-key", SETTINGS["key"])])
    assert len(answer.translations) == 2


def check_v2_translates() -> None:
    answer = v2().translate(GOOD["contents"], target_language="de", format_="text", source_language="en")
    assert answer == [
        {"translatedText": text, "input": given} for given, text in zip(GOOD["contents"], TRANSLATIONS, strict=True)
    ]
    alone = v2().translate("Save the file.", target_language="de", format_="text", source_language="en", model="nmt")
    assert alone == {"translatedText": TRANSLATIONS[1], "input": "Save the file.", "model": "nmt"}


def check_v2_detects() -> None:
    alone = v2().detect_language("Where is the train station?")
    assert alone["language"] == "en"
    assert 0.0 < alone["confidence"] <= 1.0
    several = v2().detect_language(["Wo ist der Bahnhof?", "123"])
    assert [(each["language"], each["input"]) for each in several] == [("de", "Wo ist der Bahnhof?"), ("und", "123")]


def check_v2_languages() -> None:
    client = v2(SETTINGS["keyed_url"], SETTINGS["key"])
    assert client.get_languages() == [{"language": "de", "name": "German"}, {"language": "en", "name": "English"}]
    assert client.get_languages("de")[0] == {"language": "de", "name": "Deutsch"}
    client.target_language = None
    assert client.get_languages() == [{"language": "de"}, {"language": "en"}]


def check_v2_errors_and_keys() -> None:
    url = SETTINGS["keyed_url"]
    for method, arguments in (("translate", ("a", "de")), ("get_languages", ())):
        error = raised(exceptions.Unauthorized, partial(getattr(v2(url, "dgm_wrong"), method), *arguments))
        assert error.errors[0]["reason"] == "authError"
        raised(InvalidOperation, partial(getattr(v2(url), method), *arguments))  # as in v3
    error = raised(exceptions.BadRequest, lambda: v2(url, SETTINGS["key"]).translate("a", target_language="fr"))
    assert [(about["location"], about["reason"], about["domain"]) for about in error.errors] == [
        ("target", "invalid", "global")
    ]
    assert v2(url, SETTINGS["key"]).translate("station", target_language="de")["translatedText"]
