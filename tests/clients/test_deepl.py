"""DeepL's API on server processes: by its own client, unmodified, and by requests as others send them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.calls.keys import Quotas
from tests.clients.http_clients import checks_of, run_checks, translated, write_keys
from tests.http_caller import Reply, call
from tests.key_files import ALICE, BOB
from tests.servers import ServerProcess, distinct_texts
from tests.tiny_bundle import write_tiny_bundle

CHECKS = checks_of("deepl_checks")
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
    with ServerProcess(models, "--caller-glossaries", "--glossaries", str(glossaries), has_http=True) as process:
        yield process


@pytest.fixture(scope="module")
def keyed(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    quotas = Quotas(tokens_per_minute=1)
    path = write_keys(tmp_path_factory.mktemp("keys"), alice=(ALICE, Quotas()), bob=(BOB, quotas))
    with ServerProcess(models, "--api-keys", str(path), has_http=True) as process:
        yield process


@pytest.fixture(scope="module")
def results(server: ServerProcess, keyed: ServerProcess) -> dict[str, str]:
    """Return the outcome of each check, all run by the clients' own Python."""
    texts = ["station", "Grüße an alle! & 100%", *distinct_texts(2)]
    settings = {
        "url": server.http_url,
        "keyed": keyed.http_url,
        "key": ALICE,
        "limited": BOB,
        "expected": {text: translated(server, text) for text in texts},
    }
    return run_checks("deepl_checks", settings)


def form(server: ServerProcess, path: str, body: str, method: str = "POST", **headers: str) -> Reply:
    return call(server.http_url, method, path, body=body.encode(), content_type=FORM, **headers)


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
    ("path", "body", "content_type", "message"),
    [
        ("/v2/translate", b'{"target_lang": "DE"}', "application/json", "text is missing"),
        ("/v2/translate", b"{", "application/json", "the body is not JSON"),
        ("/v2/translate", b"text=%FF&target_lang=DE", FORM, "not UTF-8"),
        ("/v2/translate", b"text=a&target_lang=DE&split_sentences=2", FORM, "split_sentences is '2'"),
        ("/v2/translate", b"text=a", "text/plain", "Content-Type is 'text/plain'"),
        ("/v2/glossaries", b"name=a&source_lang=en&target_lang=de&entries=a&entries_format=tsv", FORM, "tab"),
        ("/v3/glossaries", b'{"name": "a", "dictionaries": []}', "application/json", "dictionaries is empty"),
    ],
)
def test_what_is_refused(server: ServerProcess, path: str, body: bytes, content_type: str, message: str) -> None:
    reply = call(server.http_url, "POST", path, body=body, content_type=content_type)
    assert reply.status == 400
    assert message in reply.document["message"]


def test_a_key_comes_in_any_form(keyed: ServerProcess) -> None:
    body = "text=station&source_lang=EN&target_lang=DE"
    reply = form(keyed, "/v2/translate", body)
    assert reply.status == 403
    assert "requires an API key" in reply.document["message"]
    for key, expected in ((ALICE, 200), ("dgm_wrong", 403)):
        replies = [
            form(keyed, "/v2/translate", f"{body}&auth_key={key}"),
            form(keyed, f"/v2/translate?auth_key={key}", body),
            form(keyed, "/v2/translate", body, authorization=f"DeepL-Auth-Key {key}"),
            call(keyed.http_url, "POST", "/v2/translate", {"text": ["station"], **PAIR, "auth_key": key}),
            call(keyed.http_url, "GET", f"/v2/usage?auth_key={key}"),
        ]
        assert [each.status for each in replies] == [expected] * 5
