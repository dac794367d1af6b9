"""LibreTranslate's API on a server process: by libretranslatepy, unmodified, and by the requests of its documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.calls.keys import Quotas
from service.documents import ENDINGS
from tests.clients.http_clients import checks_of, run_checks, translated, write_keys
from tests.http_caller import Reply, call
from tests.key_files import ALICE, BOB
from tests.servers import TIMEOUT_SECONDS, ServerProcess, distinct_texts

CHECKS = checks_of("libretranslate_checks")
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def keyed(tiny_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    quotas = Quotas(requests_per_minute=1)
    path = write_keys(tmp_path_factory.mktemp("keys"), alice=(ALICE, Quotas()), bob=(BOB, quotas))
    with ServerProcess(tiny_models, "--api-keys", str(path), has_http=True) as process:
        yield process


@pytest.fixture(scope="module")
def results(server: ServerProcess, keyed: ServerProcess) -> dict[str, str]:
    """Return the outcome of each check, all run by the clients' own Python."""
    texts = ["station", "Grüße an alle! & 100%", *distinct_texts(2)]
    settings = {
        "url": server.http_url,
        "keyed": keyed.http_url,
        "key": ALICE,
        "expected": {text: translated(server, text) for text in texts},
        "seconds": round(TIMEOUT_SECONDS),
    }
    return run_checks("libretranslate_checks", settings)


def post(server: ServerProcess, path: str, **document: Any) -> Reply:
    return call(server.http_url, "POST", path, document)


@pytest.mark.parametrize("check", CHECKS)
def test_the_client_works_unmodified(results: dict[str, str], check: str) -> None:
    assert not results[check], results[check]


# The examples of https://docs.libretranslate.com/guides/api_usage, in their order.


def test_simple_translation(server: ServerProcess) -> None:
    reply = post(server, "/translate", q="Hello!", source="en", target="de", api_key="xxxxxx")
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.document == {"translatedText": translated(server, "Hello!")}


def test_auto_detection_of_the_source_language(server: ServerProcess) -> None:
    text = "Where is the next train station, please?"
    reply = post(server, "/translate", q=text, source="auto", target="de", api_key="xxxxxx")
    assert reply.document["translatedText"] == translated(server, text)
    detected = reply.document["detectedLanguage"]
    assert detected["language"] == "en"
    assert detected == post(server, "/detect", q=text).document[0]


def test_alternatives(server: ServerProcess) -> None:
    asked = {"q": "Hello", "source": "en", "target": "de", "format": "text", "alternatives": 3, "api_key": "xxxxxx"}
    reply = post(server, "/translate", **asked)
    own = {"text": "Hello", "source_language_code": "en", "target_language_code": "de"}
    [expected] = post(server, "/v1/translate", **own, options={"num_hypotheses": 4}).document["translations"]
    first, *others = [each["text"] for each in expected["hypotheses"]]
    assert others
    assert reply.document == {
        "translatedText": first,
        "alternatives": [each for each in dict.fromkeys(others) if each != first],
    }


# What its documents say in other places, or only its code does.


def test_several_texts(server: ServerProcess) -> None:
    texts = distinct_texts(2)
    reply = post(server, "/translate", q=[*texts, "123", ""], source="auto", target="de", alternatives=1)
    document = reply.document
    assert document["translatedText"] == [
        post(server, "/translate", q=text, source="en", target="de", alternatives=1).document["translatedText"]
        for text in texts
    ] + ["123", ""]
    assert [each["language"] for each in document["detectedLanguage"]] == ["en"] * 4
    assert [each["confidence"] for each in document["detectedLanguage"][2:]] == [0.0, 0.0]
    assert [len(each) <= 1 for each in document["alternatives"]] == [True] * 4


def test_forms_as_curl_sends_them(server: ServerProcess) -> None:
    expected = {"translatedText": translated(server, "Grüße\nstation")}
    plain = call(
        server.http_url, "POST", "/translate", body="q=Grüße\nstation&source=en&target=de".encode(), content_type=FORM
    )
    assert plain.document == expected
    encoded = b"q=Gr%C3%BC%C3%9Fe%0D%0Astation&source=en&target=de&format="
    assert call(server.http_url, "POST", "/translate", body=encoded, content_type=FORM).document == expected
    fields = {"q": "Grüße\r\nstation", "source": "en", "target": "de", "api_key": ""}
    parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}\r\n' for name in fields]
    body = "".join([*parts, "--b--\r\n"]).encode()
    kind = "multipart/form-data; boundary=b"
    assert call(server.http_url, "POST", "/translate", body=body, content_type=kind).document == expected


def test_settings_and_health(server: ServerProcess, keyed: ServerProcess) -> None:
    settings = call(server.http_url, "GET", "/frontend/settings").document
    assert settings == {
        "charLimit": 131_072,
        "frontendTimeout": 500,
        "apiKeys": False,
        "keyRequired": False,
        "suggestions": False,
        "filesTranslation": True,
        "supportedFilesFormat": list(ENDINGS),
        "language": {"source": {"code": "auto", "name": "Auto Detect"}, "target": {"code": "de", "name": "German"}},
    }
    assert call(keyed.http_url, "GET", "/frontend/settings").document["keyRequired"]
    for each in (server, keyed):
        assert call(each.http_url, "GET", "/health").document == {"status": "ok"}


@pytest.mark.parametrize(
    ("path", "body", "content_type", "status", "message"),
    [
        ("/translate", b"{", "application/json", 400, "the body is not JSON"),
        ("/translate", b'{"q": "a", "source": "xx", "target": "de"}', "application/json", 400, "'xx'"),
        ("/translate", b"", "multipart/form-data", 400, "boundary"),
        ("/suggest", b"q=a&s=b&source=en&target=de", FORM, 403, "disabled on this server"),
    ],
)
def test_what_is_refused(
    server: ServerProcess, path: str, body: bytes, content_type: str, status: int, message: str
) -> None:
    reply = call(server.http_url, "POST", path, body=body, content_type=content_type)
    assert reply.status == status
    assert message in reply.error


def test_a_key_comes_in_any_form(keyed: ServerProcess) -> None:
    asked = {"q": "station", "source": "en", "target": "de"}
    reply = call(keyed.http_url, "POST", "/translate", asked)
    assert reply.status == 403
    assert "requires an API key" in reply.error
    for key, expected in ((ALICE, 200), ("dgm_wrong", 403)):
        replies = [
            call(keyed.http_url, "POST", "/translate", {**asked, "api_key": key}),
            call(keyed.http_url, "POST", "/translate", asked, authorization=f"Bearer {key}"),
            call(keyed.http_url, "POST", f"/translate?api_key={key}&q=station&source=en&target=de", body=b""),
        ]
        assert [each.status for each in replies] == [expected] * 3


def test_who_has_used_a_quota_is_told_to_slow_down(keyed: ServerProcess) -> None:
    asked = {"q": "station", "source": "en", "target": "de", "api_key": BOB}
    assert call(keyed.http_url, "POST", "/translate", asked).status == 200
    reply = call(keyed.http_url, "POST", "/translate", asked)
    assert reply.status == 429
    assert reply.error.startswith("Slowdown: ")
    assert int(reply.headers["retry-after"]) > 0
