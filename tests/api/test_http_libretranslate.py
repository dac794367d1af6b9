"""LibreTranslate's API on a server that is loading, has a full queue, or serves several languages."""

from pathlib import Path

import pytest

from service.domain.errors import Overloaded
from service.translation.translator import Translator
from tests.http_caller import call
from tests.servers import Serve, distinct_texts
from tests.tiny_bundle import write_tiny_bundle

ASKED = {"q": "station", "source": "en", "target": "de"}
FREE = ("/health", "/languages", "/frontend/settings")


def test_a_server_that_loads_is_not_healthy(serve: Serve) -> None:
    server = serve(load=False, http_port=0)
    replies = [call(server.http_url, "GET", path) for path in FREE]
    replies.append(call(server.http_url, "POST", "/translate", ASKED))
    replies.append(call(server.http_url, "POST", "/detect", ASKED))
    assert [(reply.status, "loading" in reply.error) for reply in replies] == [(503, True)] * 5
    server.load()
    assert [call(server.http_url, "GET", path).status for path in FREE] == [200] * 3


def test_a_full_queue_is_no_illness(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Translator, "overload", lambda *_: Overloaded("the queue is full", 2.5))
    server = serve(http_port=0)
    assert [call(server.http_url, "GET", path).status for path in FREE] == [200] * 3
    reply = call(server.http_url, "POST", "/translate", ASKED)
    assert (reply.status, reply.error) == (429, "Slowdown: the queue is full")
    assert reply.headers["retry-after"] == "3"


def test_languages_have_the_codes_that_libretranslate_gives_them(serve: Serve, tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "many" / "1", "many", among="en zho_Hans zho_Hant pt_br")
    server = serve(models=tmp_path, http_port=0)
    listed = call(server.http_url, "GET", "/languages").document
    assert [each["code"] for each in listed] == ["en", "pt-BR", "zh-Hans", "zh-Hant"]
    assert listed[0]["targets"] == ["pt-BR", "zh-Hans", "zh-Hant"]
    [text] = distinct_texts(1)
    for theirs, ours in (("pb", "pt-BR"), ("zt", "zh-Hant"), ("zh", "zh-Hans")):
        asked = [{"q": text, "source": "en", "target": code} for code in (theirs, ours)]
        replies = [call(server.http_url, "POST", "/translate", each) for each in asked]
        assert [each.status for each in replies] == [200, 200], replies[0].body
        assert replies[0].body == replies[1].body
    detected = call(server.http_url, "POST", "/translate", {"q": "請問火車站在哪裡", "source": "auto", "target": "en"})
    assert detected.document["detectedLanguage"]["language"] == "zh-Hant"
    assert detected.document["detectedLanguage"]["confidence"] > 50.0


def test_texts_of_several_languages_are_told_apart(serve: Serve, tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path / "many" / "1", "many", among="en de fr")
    server = serve(models=tmp_path, http_port=0)
    texts = ["Where is the next train station?", "Wo ist der nächste Bahnhof, bitte?", "42"]
    document = call(server.http_url, "POST", "/translate", {"q": texts, "source": "auto", "target": "fr"}).document
    assert [each["language"] for each in document["detectedLanguage"]] == ["en", "de", "en"]
    assert document["detectedLanguage"][1]["confidence"] > 50.0
    assert document["detectedLanguage"][2]["confidence"] == 0.0
    expected = [
        call(server.http_url, "POST", "/translate", {"q": text, "source": source, "target": "fr"}).document
        for text, source in zip(texts, ("en", "de", "en"), strict=True)
    ]
    assert document["translatedText"] == [each["translatedText"] for each in expected]
