"""Checks of libretranslatepy, requests and aiohttp, which test_foreign_clients.py runs without our code."""

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
KEYED = SETTINGS["keyed_url"]  # a server that asks for keys
KEY = SETTINGS["key"]
EXPECTED = SETTINGS["expected"]  # text -> translation
SECONDS = SETTINGS["seconds"]
TEXTS = list(EXPECTED)
FIELDS = {"q": TEXTS[0], "source": "en", "target": "de", "format": "text", "api_key": ""}

client = LibreTranslateAPI(URL)


def check_translate_and_detect() -> None:
    for text, expected in EXPECTED.items():
        assert client.translate(text, "en", "de", timeout=SECONDS) == expected
    assert client.translate(TEXTS[0], "auto", "de") == EXPECTED[TEXTS[0]]
    best, *_ = client.detect("Wo ist der nächste Bahnhof, und wann fährt der Zug?", timeout=SECONDS)
    assert best["language"] == "de"
    assert isinstance(best["confidence"], float)
    assert 50.0 < best["confidence"] <= 100.0


def status_of(call: Callable[[], Any]) -> int:
    try:
        call()
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    return 200


def check_keys() -> None:
    for key in (None, "", "dgm_wrong"):
        each = LibreTranslateAPI(KEYED, api_key=key)
        assert status_of(partial(each.translate, "station", "en", "de")) == 403
        assert status_of(partial(each.detect, "station")) == 403
    keyed = LibreTranslateAPI(KEYED, api_key=KEY)
    assert keyed.translate(TEXTS[0], "en", "de") == EXPECTED[TEXTS[0]]
    assert keyed.detect("Where is the train station?")[0]["language"] == "en"
    languages = [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    assert keyed.languages(timeout=SECONDS) == LibreTranslateAPI(KEYED).languages() == languages


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
    fields = {"source": "en", "target": "de", "api_key": KEY}
    file = {"file": ("a.txt", f"{TEXTS[0]}\n".encode(), "text/plain")}
    answer = requests.post(f"{KEYED}/translate_file", data=fields, files=file, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    found = requests.get(answer.json()["translatedFileUrl"], timeout=SECONDS)
    assert found.content.decode() == f"{EXPECTED[TEXTS[0]]}\n"
    assert "a.de.txt" in found.headers["Content-Disposition"]
