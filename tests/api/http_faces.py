"""How one text is sent to each API over HTTP."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.http_caller import Reply, call
from tests.servers import InProcessServer


@dataclass(frozen=True)
class Face:
    """How one text is sent to an API, and where its translation is in the answer."""

    path: str
    asked: Callable[[str], Any]
    answered: Callable[[Any], str]
    no_key: int = 401


GERMAN = {"targetLanguageCode": "de"}
FACES = {
    "v1": Face(
        "/v1/translate",
        lambda text: {"text": text, "source_language_code": "en", "target_language_code": "de"},
        lambda answer: answer["translations"][0]["text"],
    ),
    "libretranslate": Face(
        "/translate",
        lambda text: {"q": text, "source": "en", "target": "de"},
        lambda answer: answer["translatedText"],
        no_key=403,
    ),
    "deepl": Face(
        "/v2/translate",
        lambda text: {"text": [text], "source_lang": "EN", "target_lang": "DE"},
        lambda answer: answer["translations"][0]["text"],
        no_key=403,
    ),
    "google.v2": Face(
        "/language/translate/v2",
        lambda text: {"q": text, "source": "en", "target": "de", "format": "text"},
        lambda answer: answer["data"]["translations"][0]["translatedText"],
    ),
    "google.v3": Face(
        "/v3/projects/p/locations/global:translateText",
        lambda text: {"contents": [text], "mimeType": "text/plain", "sourceLanguageCode": "en", **GERMAN},
        lambda answer: answer["translations"][0]["translatedText"],
    ),
    "openai": Face(
        "/v1/chat/completions",
        lambda text: {"model": "en-de", "messages": [{"role": "user", "content": text}]},
        lambda answer: answer["choices"][0]["message"]["content"],
    ),
    "kserve": Face(
        "/v2/models/tiny/infer",
        lambda text: {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": [text]}]},
        lambda answer: next(each["data"][0] for each in answer["outputs"] if each["name"] == "translation"),
    ),
}
EACH = pytest.mark.parametrize("name", FACES)


def send(server: InProcessServer, name: str, text: str, **headers: str) -> Reply:
    face = FACES[name]
    body = json.dumps(face.asked(text)).encode()
    return call(server.http_url, "POST", face.path, body=body, content_type="application/json", **headers)
