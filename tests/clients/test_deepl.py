"""DeepL's API on server processes: by its own client, unmodified, and by requests as others send them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.calls.keys import Quotas, new_key
from tests.clients.http_clients import checks_of, run_checks, write_keys
from tests.http_caller import Reply, call
from tests.servers import ServerProcess, distinct_texts
from tests.tiny_bundle import write_tiny_bundle

CHECKS = checks_of("deepl_checks")
KEY, LIMITED = new_key(), new_key()
FORM = "application/x-www-form-urlencoded"
PAIR = {"source_lang": "EN", "target_lang": "DE"}


def dictionary(target: str) -> dict[str, str]:
    """Return a dictionary, of an API of version 3, with this translation of "station"."""
    return {**PAIR, "entries": f"station\t{target}", "entries_format": "tsv"}


@pytest.fixture(scope="module")
def models(tiny_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with models in both directions."""
    folder = tmp_path_factory.mktemp("both")
    shutil.copytree(tiny_bundle, folder / "tiny" / "1")
    write_tiny_bundle(folder / "back" / "1", name="back", source="de", target="en", seed=1)
    return folder


@pytest.fixture(scope="module")
def glossaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("glossaries")
    (folder / "products.en-de.tsv").write_text("window\tScheibe\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server(models: Path, glossaries: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(models, "--caller-glossaries", "--glossaries", str(glossaries), has_http=True)
    yield process
    process.kill()


@pytest.fixture(scope="module")
def keyed(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    quotas = Quotas(tokens_per_minute=1)
    path = write_keys(tmp_path_factory.mktemp("keys"), alice=(KEY, Quotas()), bob=(LIMITED, quotas))
    process = ServerProcess(models, "--api-keys", str(path), has_http=True)
    yield process
    process.kill()


@pytest.fixture(scope="module")
def results(server: ServerProcess, keyed: ServerProcess) -> dict[str, str]:
    """Return the outcome of each check, all run by the clients' own Python."""
    texts = ["station", "Grüße an alle! & 100%", *distinct_texts(2)]
    settings = {
        "url": server.http_url,
        "keyed": keyed.http_url,
        "key": KEY,
        "limited": LIMITED,
        "expected": {text: translated(server, text) for text in texts},
    }
    return run_checks("deepl_checks", settings)


def translated(server: ServerProcess, text: str, **options: Any) -> str:
    """Return what our own API answers."""
    asked = {"text": text, "source_language_code": "en", "target_language_code": "de", **options}
    [translation] = call(server.http_url, "POST", "/v1/translate", asked).document["translations"]
    return str(translation["text"])


def form(server: ServerProcess, path: str, body: str, method: str = "POST", **headers: str) -> Reply:
    return call(server.http_url, method, path, body=body.encode(), content_type=FORM, **headers)


def test_there_are_checks() -> None:
    assert len(CHECKS) > 20


@pytest.mark.parametrize("check", CHECKS)
def test_the_client_works_unmodified(results: dict[str, str], check: str) -> None:
    assert not results[check], results[check]


def test_a_form_as_curl_sends_it(server: ServerProcess) -> None:
    reply = form(server, "/v2/translate", "text=station&text=window&source_lang=EN&target_lang=DE&split_sentences=0")
    assert reply.status == 200
    assert reply.document == {
        "translations": [
            {"detected_source_language": "EN", "text": translated(server, text)} for text in ("station", "window")
        ]
    }


def test_tags_of_a_form_are_separated_by_commas(server: ServerProcess) -> None:
    body = "text=<a>station</a><b>window</b>&target_lang=DE&source_lang=EN&tag_handling=xml&ignore_tags=b,c"
    [translation] = form(server, "/v2/translate", body).document["translations"]
    assert translation["text"].endswith("<b>window</b>")
    assert translation["tag_handling_version"] == "v2"


def test_the_operator_s_glossaries_are_used_but_not_changed(server: ServerProcess, glossaries: Path) -> None:
    listed = call(server.http_url, "GET", "/v2/glossaries").document["glossaries"]
    [products] = [each for each in listed if each["name"] == "products"]
    asked = {"text": ["window"], **PAIR, "glossary_id": products["glossary_id"]}
    [translation] = call(server.http_url, "POST", "/v2/translate", asked).document["translations"]
    assert "Scheibe" in translation["text"]
    for version, method in (("v2", "DELETE"), ("v3", "DELETE")):
        reply = call(server.http_url, method, f"/{version}/glossaries/{products['glossary_id']}")
        assert reply.status == 400
        assert "operator" in reply.document["message"]
    assert (glossaries / "products.en-de.tsv").read_text(encoding="utf-8") == "window\tScheibe\n"


def test_a_new_glossary_is_a_file_that_every_api_serves(server: ServerProcess, glossaries: Path) -> None:
    asked = {"name": "../..//My.station", **PAIR, "entries": "station\tBahnsteig", "entries_format": "tsv"}
    created = call(server.http_url, "POST", "/v2/glossaries", asked)
    assert created.status == 201
    assert (glossaries / "My-station.en-de.tsv").exists()
    assert "Bahnsteig" in translated(server, "the station", glossary="My-station")
    removed = call(server.http_url, "DELETE", f"/v2/glossaries/{created.document['glossary_id']}")
    assert (removed.status, removed.body) == (204, b"")
    assert "content-length" not in removed.headers
    assert [each.name for each in glossaries.iterdir()] == ["products.en-de.tsv"]


def test_languages_of_version_3(server: ServerProcess) -> None:
    listed = call(server.http_url, "GET", "/v3/languages?resource=translate_text").document
    assert [(each["lang"], each["usable_as_source"], each["usable_as_target"]) for each in listed] == [
        ("de", True, True),
        ("en", True, False),
        ("en-GB", False, True),
        ("en-US", False, True),
    ]
    assert call(server.http_url, "GET", "/v3/languages?resource=voice").status == 400


@pytest.mark.parametrize(
    ("path", "body", "content_type", "status", "message"),
    [
        ("/v2/translate", b'{"target_lang": "DE"}', "application/json", 400, "text is missing"),
        ("/v2/translate", b'{"text": ["a"]}', "application/json", 400, "target_lang is missing"),
        ("/v2/translate", b'{"text": [], "target_lang": "DE"}', "application/json", 400, "text is empty"),
        ("/v2/translate", b'{"text": [1], "target_lang": "DE"}', "application/json", 400, "text[0] is 1"),
        ("/v2/translate", b'["a"]', "application/json", 400, "the body is a list"),
        ("/v2/translate", b"{", "application/json", 400, "the body is not JSON"),
        ("/v2/translate", b"text=a&target_lang=", FORM, 400, "target_lang is empty"),
        ("/v2/translate", b"text=%FF&target_lang=DE", FORM, 400, "not UTF-8"),
        ("/v2/translate", b"text=a&target_lang=DE&split_sentences=2", FORM, 400, "split_sentences is '2'"),
        ("/v2/translate", b"text=a&target_lang=DE&formality=rude", FORM, 400, "formality is 'rude'"),
        ("/v2/translate", b"text=a&target_lang=DE&tag_handling=json", FORM, 400, "tag_handling is 'json'"),
        ("/v2/translate", b"text=a&target_lang=DE&ignore_tags=x", FORM, 400, "ignore_tags is given without"),
        ("/v2/translate", b"text=a&target_lang=DE&glossary_id=x", FORM, 400, "requires the source_lang parameter"),
        ("/v2/translate", b"text=a", "text/plain", 400, "Content-Type is 'text/plain'"),
        ("/v2/glossaries", b"name=a&source_lang=en&target_lang=de&entries=a&entries_format=tsv", FORM, 400, "tab"),
        ("/v2/glossaries", b"name=&source_lang=en&target_lang=de&entries=a&entries_format=tsv", FORM, 400, "name"),
        ("/v3/glossaries", b'{"name": "a", "dictionaries": []}', "application/json", 400, "dictionaries is empty"),
    ],
)
def test_what_is_refused(
    server: ServerProcess, path: str, body: bytes, content_type: str, status: int, message: str
) -> None:
    reply = call(server.http_url, "POST", path, body=body, content_type=content_type)
    assert reply.status == status
    assert message in reply.document["message"]


def test_a_key_comes_in_any_form(keyed: ServerProcess) -> None:
    body = "text=station&source_lang=EN&target_lang=DE"
    reply = form(keyed, "/v2/translate", body)
    assert reply.status == 403
    assert "requires an API key" in reply.document["message"]
    for key, expected in ((KEY, 200), ("dgm_wrong", 403)):
        replies = [
            form(keyed, "/v2/translate", f"{body}&auth_key={key}"),
            form(keyed, f"/v2/translate?auth_key={key}", body),
            form(keyed, "/v2/translate", body, authorization=f"DeepL-Auth-Key {key}"),
            call(keyed.http_url, "POST", "/v2/translate", {"text": ["station"], **PAIR, "auth_key": key}),
            call(keyed.http_url, "GET", f"/v2/usage?auth_key={key}"),
        ]
        assert [each.status for each in replies] == [expected] * 5


@pytest.mark.single  # it starts two itself
def test_a_new_glossary_is_there_in_every_worker_process(models: Path, tmp_path: Path) -> None:
    server = ServerProcess(
        models, "--workers", "2", "--caller-glossaries", "--glossaries", str(tmp_path), has_http=True
    )
    try:
        asked: dict[str, Any] = {"name": "a", **PAIR, "entries": "station\tBahnsteig", "entries_format": "tsv"}
        created = call(server.http_url, "POST", "/v2/glossaries", asked).document["glossary_id"]
        asked = {"text": ["station"], **PAIR, "glossary_id": created}
        for _ in range(10):  # each on a connection of its own, of which either process takes some
            [translation] = call(server.http_url, "POST", "/v2/translate", asked).document["translations"]
            assert "Bahnsteig" in translation["text"]
        assert call(server.http_url, "DELETE", f"/v2/glossaries/{created}").status == 204
        assert {call(server.http_url, "POST", "/v2/translate", asked).status for _ in range(10)} == {404}
    finally:
        server.kill()


@pytest.mark.single  # it starts two itself
def test_what_becomes_of_a_glossary_every_api_of_every_worker_process_knows(models: Path, tmp_path: Path) -> None:
    server = ServerProcess(
        models, "--workers", "2", "--caller-glossaries", "--glossaries", str(tmp_path), has_http=True
    )
    by_name = {"text": "station", "source_language_code": "en", "target_language_code": "de", "glossary": "a"}

    def asked_by_name() -> list[Reply]:
        return [call(server.http_url, "POST", "/v1/translate", by_name) for _ in range(10)]

    def listed() -> set[int]:
        path = "/v3/projects/p/locations/l/glossaries"
        replies = [call(server.http_url, "GET", path) for _ in range(10)]
        return {len(each.document.get("glossaries", [])) for each in replies}

    try:
        assert {each.status for each in asked_by_name()} == {404}
        assert listed() == {0}
        asked: dict[str, Any] = {"name": "a", "dictionaries": [dictionary("Bahnsteig")]}
        path = f"/v3/glossaries/{call(server.http_url, 'POST', '/v3/glossaries', asked).document['glossary_id']}"
        assert all("Bahnsteig" in each.document["translations"][0]["text"] for each in asked_by_name())
        assert listed() == {1}
        assert call(server.http_url, "PUT", f"{path}/dictionaries", dictionary("Halt")).status == 200
        assert all("Halt" in each.document["translations"][0]["text"] for each in asked_by_name())
        assert call(server.http_url, "DELETE", path).status == 204
        assert {each.status for each in asked_by_name()} == {404}
        assert listed() == {0}
    finally:
        server.kill()
