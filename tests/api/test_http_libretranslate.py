"""LibreTranslate's API: what its documents show, what its own server lets be, and several languages."""

from pathlib import Path

from service.documents import ENDINGS
from tests.http_caller import call
from tests.servers import InProcessServer, Serve, distinct_texts
from tests.tiny_bundle import write_tiny_bundle


def test_alternatives_are_our_hypotheses(server: InProcessServer) -> None:
    asked = {"q": "Hello", "source": "en", "target": "de", "format": "text", "alternatives": 3, "api_key": "xxxxxx"}
    reply = call(server.http_url, "POST", "/translate", asked)
    own = {"text": "Hello", "target_language_code": "de", "options": {"num_hypotheses": 4}}
    [expected] = call(server.http_url, "POST", "/v1/translate", own).document["translations"]
    first, *others = [each["text"] for each in expected["hypotheses"]]
    alternatives = [each for each in dict.fromkeys(others) if each != first]
    assert alternatives
    assert reply.document == {"translatedText": first, "alternatives": alternatives}


def test_settings_and_health(server: InProcessServer, keyed: InProcessServer) -> None:
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
    reply = call(server.http_url, "POST", "/suggest", {"q": "a", "s": "b", "source": "en", "target": "de"})
    assert (reply.status, "disabled on this server" in reply.error) == (403, True)


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
    alone = call(server.http_url, "POST", "/detect", {"q": "請問火車站在哪裡"}).document
    assert alone[0] == detected.document["detectedLanguage"]


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
