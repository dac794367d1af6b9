"""How one text is sent to each API over HTTP."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.http_caller import Reply, call
from tests.servers import InProcessServer


def _no_language(answer: Any) -> str:
    return ""


@dataclass(frozen=True)
class Face:
    """How one text is sent to an API, and where its translation and the detected language are in the answer.

    `fields` returns the body for a text, its language (empty: to be detected) and the language to translate it into.
    """

    path: str
    fields: Callable[[str, str, str], dict[str, Any]]
    answered: Callable[[Any], str]
    detected: Callable[[Any], str] = _no_language
    no_key: int = 401

    def asked(self, text: str, source: str = "en", target: str = "de") -> dict[str, Any]:
        """Return the body, without the fields that are empty."""
        return {name: value for name, value in self.fields(text, source, target).items() if value != ""}


def _infer_fields(text: str, source: str, target: str) -> dict[str, Any]:
    languages = {"source_language": source, "target_language": target}
    return {
        "inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": [text]}],
        "parameters": {name: code for name, code in languages.items() if code},
    }


FACES = {
    "v1": Face(
        "/v1/translate",
        lambda text, source, target: {"text": text, "source_language_code": source, "target_language_code": target},
        lambda answer: answer["translations"][0]["text"],
        lambda answer: answer["translations"][0].get("detected_language_code", ""),
    ),
    "libretranslate": Face(
        "/translate",
        lambda text, source, target: {"q": text, "source": source or "auto", "target": target},
        lambda answer: answer["translatedText"],
        lambda answer: answer.get("detectedLanguage", {}).get("language", ""),
        no_key=403,
    ),
    "deepl": Face(
        "/v2/translate",
        lambda text, source, target: {"text": [text], "source_lang": source.upper(), "target_lang": target.upper()},
        lambda answer: answer["translations"][0]["text"],
        lambda answer: answer["translations"][0]["detected_source_language"].lower(),
        no_key=403,
    ),
    "google.v2": Face(
        "/language/translate/v2",
        lambda text, source, target: {"q": text, "source": source, "target": target, "format": "text"},
        lambda answer: answer["data"]["translations"][0]["translatedText"],
        lambda answer: answer["data"]["translations"][0].get("detectedSourceLanguage", ""),
    ),
    "google.v3": Face(
        "/v3/projects/p/locations/global:translateText",
        lambda text, source, target: {
            "contents": [text],
            "mimeType": "text/plain",
            "sourceLanguageCode": source,
            "targetLanguageCode": target,
        },
        lambda answer: answer["translations"][0]["translatedText"],
        lambda answer: answer["translations"][0].get("detectedLanguageCode", ""),
    ),
    "openai": Face(
        "/v1/chat/completions",
        lambda text, source, target: {
            "model": f"{source or 'auto'}-{target}",
            "messages": [{"role": "user", "content": text}],
        },
        lambda answer: answer["choices"][0]["message"]["content"],
    ),
    "responses": Face(
        "/v1/responses",
        lambda text, source, target: {"model": f"{source or 'auto'}-{target}", "input": text},
        lambda answer: answer["output"][0]["content"][0]["text"],
    ),
    "kserve": Face(  # which names a model, and so its pair
        "/v2/models/tiny/infer",
        _infer_fields,
        lambda answer: next(each["data"][0] for each in answer["outputs"] if each["name"] == "translation"),
    ),
}
EACH = pytest.mark.parametrize("name", FACES)
OPERATORS = Face(
    "/api/translate",
    lambda text, source, target: {
        "texts": [text],
        "source_language_code": source,
        "target_language_code": target,
    },
    lambda answer: answer["translations"][0]["text"],
)
EVERYWHERE = FACES | {"operators": OPERATORS}


def url_of(server: InProcessServer, name: str) -> str:
    """Return the address of the port that has an API."""
    return f"http://127.0.0.1:{server.server.admin_port}" if name == "operators" else server.http_url


def send(
    server: InProcessServer, name: str, text: str, source: str = "en", target: str = "de", **headers: str
) -> Reply:
    """Send a text to an API."""
    face = EVERYWHERE[name]
    return call(url_of(server, name), "POST", face.path, face.asked(text, source, target), None, **headers)
