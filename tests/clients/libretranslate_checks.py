"""Checks that test_libretranslate.py runs with the clients' own Python, which has none of our code."""

import asyncio
import json
import sys
import urllib.error
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
import requests
from libretranslatepy import LibreTranslateAPI

SETTINGS = json.loads(sys.argv[1])
URL = SETTINGS["url"]
KEYED = SETTINGS["keyed"]  # a server that asks for keys
KEY = SETTINGS["key"]
EXPECTED = SETTINGS["expected"]  # text -> translation
SECONDS = SETTINGS["seconds"]
TEXTS = list(EXPECTED)
FIELDS = {"q": TEXTS[0], "source": "en", "target": "de", "format": "text", "api_key": ""}

client = LibreTranslateAPI(URL)


def refused(call: Callable[[], Any]) -> tuple[int, str]:
    """Return the status and the message of a call that must fail."""
    try:
        answer = call()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]
    raise AssertionError(f"it was answered: {answer}")


def check_translate() -> None:
    for text, expected in EXPECTED.items():
        assert client.translate(text, "en", "de", timeout=SECONDS) == expected


def check_translate_from_a_detected_language() -> None:
    assert client.translate(TEXTS[0], "auto", "de") == EXPECTED[TEXTS[0]]


def check_detect() -> None:
    best, *_ = client.detect("Wo ist der nächste Bahnhof, und wann fährt der Zug?", timeout=SECONDS)
    assert best["language"] == "de"
    assert isinstance(best["confidence"], float)
    assert 50.0 < best["confidence"] <= 100.0


def check_languages() -> None:
    assert client.languages(timeout=SECONDS) == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]


def check_a_key_is_needed() -> None:
    for each in (LibreTranslateAPI(KEYED), LibreTranslateAPI(KEYED, api_key="")):
        assert refused(partial(each.translate, "station", "en", "de"))[0] == 403
        assert refused(partial(each.detect, "station"))[0] == 403
    status, message = refused(lambda: LibreTranslateAPI(KEYED, api_key="dgm_wrong").translate("station", "en", "de"))
    assert status == 403
    assert "unknown" in message


def check_a_key_opens() -> None:
    keyed = LibreTranslateAPI(KEYED, api_key=KEY)
    assert keyed.translate(TEXTS[0], "en", "de") == EXPECTED[TEXTS[0]]
    assert keyed.detect("Where is the train station?")[0]["language"] == "en"
    assert keyed.languages() == LibreTranslateAPI(KEYED).languages() == client.languages()


def check_forms_of_requests() -> None:
    expected = EXPECTED[TEXTS[0]]
    form = requests.post(f"{URL}/translate", data=FIELDS, timeout=SECONDS)
    assert form.json() == {"translatedText": expected}
    multipart = requests.post(
        f"{URL}/translate", files={name: (None, value) for name, value in FIELDS.items()}, timeout=SECONDS
    )
    assert multipart.json() == {"translatedText": expected}
    query = requests.post(f"{URL}/translate", params=FIELDS, timeout=SECONDS)
    assert query.json() == {"translatedText": expected}
    several = requests.post(f"{URL}/translate", data={**FIELDS, "q": TEXTS}, timeout=SECONDS)
    assert several.json() == {"translatedText": list(EXPECTED.values())}


def check_forms_of_aiohttp() -> None:
    async def scenario() -> Any:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(SECONDS)) as session:
            form = aiohttp.FormData(default_to_multipart=True)
            for name, value in {**FIELDS, "alternatives": "2"}.items():
                form.add_field(name, value)
            async with session.post(f"{URL}/translate", data=form) as answer:
                assert answer.status == 200, await answer.text()
                return await answer.json()

    answer = asyncio.run(scenario())
    assert isinstance(answer["translatedText"], str)
    assert 0 < len(answer["alternatives"]) <= 2


def check_a_file() -> None:
    fields = {"source": "en", "target": "de"}
    file = {"file": ("a.txt", f"{TEXTS[0]}\n".encode(), "text/plain")}
    answer = requests.post(f"{URL}/translate_file", data=fields, files=file, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    address = answer.json()["translatedFileUrl"]
    assert address.startswith(f"{URL}/download_file/")
    assert address.endswith(".de.txt")
    for _ in range(2):
        found = requests.get(address, timeout=SECONDS)
        assert found.content.decode() == f"{EXPECTED[TEXTS[0]]}\n"
        assert "a.de.txt" in found.headers["Content-Disposition"]
    assert requests.get(address.replace("_file/", "_file/0"), timeout=SECONDS).status_code == 404


def check_a_file_with_a_key() -> None:
    fields, file = {"source": "en", "target": "de"}, {"file": ("a.txt", b"station", "text/plain")}
    unknown = requests.post(f"{KEYED}/translate_file", data=fields, files=file, timeout=SECONDS)
    assert unknown.status_code == 403
    assert "requires an API key" in unknown.json()["error"]
    known = requests.post(f"{KEYED}/translate_file", data={**fields, "api_key": KEY}, files=file, timeout=SECONDS)
    assert requests.get(known.json()["translatedFileUrl"], timeout=SECONDS).status_code == 200
