"""Glossaries that callers create belong to their key: no other key reads, changes or translates with them."""

import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.text import glossary_files
from tests.api.http_faces import FACES
from tests.grpc_calls import refused, request_of
from tests.http_caller import Reply, call
from tests.http_post import form_of
from tests.key_files import ALICE, BOB, write_keys
from tests.patience import patient
from tests.servers import InProcessServer, Serve

PARENT = "projects/p/locations/l"
SECRET = "Geheimwort"


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> InProcessServer:
    keys, folder = write_keys(tmp_path, alice=ALICE, bob=BOB), tmp_path / "glossaries"
    folder.mkdir()
    (folder / "ours.en-de.tsv").write_text("station\tHalt\n")
    return serve(http_port=0, api_keys=keys, glossaries=folder, caller_glossaries=True)


def asked(server: InProcessServer, key: str, method: str, path: str, document: Any = None) -> Reply:
    return call(server.http_url, method, path, document, authorization=f"Bearer {key}")


def created(server: InProcessServer, key: str, name: str = "secrets", entries: str = f"station\t{SECRET}") -> Any:
    given = {"name": name, "source_lang": "en", "target_lang": "de", "entries": entries, "entries_format": "tsv"}
    reply = asked(server, key, "POST", "/v2/glossaries", given)
    assert reply.status == 201, reply.body
    return reply.document["glossary_id"]


def names(server: InProcessServer, key: str, path: str) -> list[str]:
    return [each["name"] for each in asked(server, key, "GET", path).document["glossaries"]]


def routes(glossary: str) -> list[tuple[str, str, Any]]:
    """Return each route of DeepL's API that takes a glossary's id: method, path, body."""
    pair = {"source_lang": "en", "target_lang": "de"}
    dictionary = {**pair, "entries": "a\tb", "entries_format": "tsv"}
    query = "source_lang=en&target_lang=de"
    text = FACES["deepl"].asked("station")
    return [
        ("GET", f"/v2/glossaries/{glossary}", None),
        ("GET", f"/v2/glossaries/{glossary}/entries", None),
        ("GET", f"/v3/glossaries/{glossary}", None),
        ("GET", f"/v3/glossaries/{glossary}/entries?{query}", None),
        ("POST", "/v2/translate", {**text, "glossary_id": glossary}),
        ("POST", "/v2/translate", {**text, "glossary_ids": [glossary]}),
        ("PATCH", f"/v3/glossaries/{glossary}", {"name": "renamed", "dictionaries": [dictionary]}),
        ("PUT", f"/v3/glossaries/{glossary}/dictionaries", dictionary),
        ("DELETE", f"/v3/glossaries/{glossary}/dictionaries?{query}", None),
        ("DELETE", f"/v3/glossaries/{glossary}", None),
        ("DELETE", f"/v2/glossaries/{glossary}", None),
    ]


@pytest.mark.parametrize("place", range(len(routes(""))))
def test_another_key_finds_none_by_any_route(server: InProcessServer, place: int) -> None:
    glossary = created(server, ALICE)
    method, path, body = routes(glossary)[place]
    foreign = asked(server, BOB, method, path, body)
    assert foreign.status == 404, foreign.body
    assert f"there is no glossary '{glossary}'" in foreign.body.decode()
    assert SECRET not in foreign.body.decode()
    entries = asked(server, ALICE, "GET", f"/v2/glossaries/{glossary}/entries")
    assert entries.body.decode() == f"station\t{SECRET}"
    assert asked(server, ALICE, method, path, body).status in (200, 204)


@pytest.mark.parametrize("path", ["/v2/glossaries", "/v3/glossaries"])
def test_a_list_has_the_operator_s_and_the_caller_s_own(server: InProcessServer, path: str) -> None:
    created(server, ALICE)
    created(server, BOB, name="mine")
    assert names(server, ALICE, path) == ["ours", "secrets"]
    assert names(server, BOB, path) == ["mine", "ours"]


def test_an_upload_can_not_name_another_key_s(server: InProcessServer) -> None:
    glossary = created(server, ALICE)
    fields = {"source_lang": "EN", "target_lang": "DE", "glossary_id": glossary}
    body, kind = form_of("a.txt", "station", fields)
    for key, status in ((BOB, 404), (ALICE, 200)):
        about = {"content_type": kind, "authorization": f"Bearer {key}"}
        reply = call(server.http_url, "POST", "/v2/document", body=body, **about)
        assert reply.status == status, reply.body


def test_no_other_api_knows_another_key_s(server: InProcessServer) -> None:
    """Neither by name, nor in the lists that errors have."""
    created(server, ALICE)
    for key, may in ((ALICE, True), (BOB, False)):
        given = FACES["v1"].asked("station")
        translated = asked(server, key, "POST", "/v1/translate", {**given, "glossary": "secrets"})
        assert translated.status == (200 if may else 404)
        assert (SECRET in translated.body.decode()) is may
        unknown = asked(server, key, "POST", "/v1/translate", {**given, "glossary": "none"})
        assert ("secrets" in unknown.error["message"]) is may
        assert "ours from en into de" in unknown.error["message"]
        google = FACES["google.v3"].asked("station")
        google["glossaryConfig"] = {"glossary": f"{PARENT}/glossaries/secrets"}
        for reply in (
            asked(server, key, "POST", f"/v3/{PARENT}:translateText", google),
            asked(server, key, "GET", f"/v3/{PARENT}/glossaries/secrets"),
            asked(server, key, "GET", f"/v3/{PARENT}/glossaries/secrets/glossaryEntries"),
            asked(server, key, "GET", f"/v3/{PARENT}/glossaries/secrets/glossaryEntries/1"),
        ):
            assert reply.status == (200 if may else 404), reply.body
            assert may or SECRET not in reply.body.decode()
        listed = asked(server, key, "GET", f"/v3/{PARENT}/glossaries").document["glossaries"]
        assert len(listed) == 1 + may


def test_nor_does_grpc(server: InProcessServer) -> None:
    created(server, ALICE)
    request = request_of(["station"], glossary="secrets")
    with grpc.insecure_channel(server.address) as channel:
        stub, google = pb_grpc.TranslationServiceStub(channel), google_grpc.TranslationServiceStub(channel)

        def metadata(key: str) -> dict[str, Any]:
            return {"timeout": patient(30), "metadata": (("x-api-key", key),)}

        assert stub.Translate(request, **metadata(ALICE)).translations[0].text == SECRET
        for method in (stub.Translate, stub.TranslateStream):
            assert refused(method, request, **metadata(BOB)).code() is grpc.StatusCode.NOT_FOUND
        for key, number in ((ALICE, 2), (BOB, 1)):
            listed = google.ListGlossaries(google_pb.ListGlossariesRequest(parent=PARENT), **metadata(key))
            assert len(listed.glossaries) == number


def test_one_key_does_not_take_the_room_of_others(server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary_files, "MAX_DICTIONARIES", 48)
    for number in range(3):
        created(server, ALICE, name=f"a {number}")
    given = {"name": "x", "source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}
    refused = asked(server, ALICE, "POST", "/v2/glossaries", given)
    assert refused.status == 400
    message = json.loads(refused.body)["message"]
    assert "the glossaries of key alice would have 4 dictionaries; allowed are 3. Delete some." in message
    created(server, BOB)
