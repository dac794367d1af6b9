"""Models and glossaries that a key may use: what is listed, what is refused, on every API; names that don't exist."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from dragoman_client import Client, ClientError
from service.calls.keys import key_lines, new_key
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.api.http_faces import FACES, send
from tests.api.test_api_keys import is_let_in
from tests.certificates import replace
from tests.grpc_calls import infer_request, refused
from tests.http_caller import Reply, call
from tests.http_post import form_of
from tests.key_files import ALICE, NO_QUOTAS, SHOP, write_keys
from tests.patience import patient
from tests.servers import InProcessServer, Serve, eventually
from tests.tiny_bundle import put_bundle, write_tiny_bundle

GRANTS = {"shop": {"models": ["tiny"], "glossaries": ["brand"]}}
METADATA = (("x-api-key", SHOP),)
V3 = "/v3/projects/p/locations/global"


@pytest.fixture(scope="module")
def server(share: Serve, tmp_path_factory: pytest.TempPathFactory, tiny_bundle: Path) -> InProcessServer:
    """Return one with a model from English to German and one from French to English, and two glossaries.

    The key alice may use all, the key shop the first of each.
    """
    models, glossaries = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("glossaries")
    french = write_tiny_bundle(tmp_path_factory.mktemp("french") / "1", "fr-en", "fr", "en", seed=5)
    put_bundle(models, tiny_bundle, "tiny", "1")
    put_bundle(models, french, "fr-en", "1")
    for name in ("brand", "secret"):
        (glossaries / f"{name}.en-de.tsv").write_text(f"window\tZq{name}\n", encoding="utf-8")
    keys = write_keys(tmp_path_factory.mktemp("keys"), NO_QUOTAS, GRANTS, alice=ALICE, shop=SHOP)
    return share(models=models, glossaries=glossaries, api_keys=keys, max_slots=4, http_port=0)


@pytest.fixture(scope="module")
def shop(server: InProcessServer) -> Iterator[Client]:
    with server.client(api_key=SHOP) as client:
        yield client


def get(server: InProcessServer, path: str, key: str = SHOP) -> Any:
    reply = call(server.http_url, "GET", path, x_api_key=key)
    assert reply.status == 200, reply.body
    return reply.document


# What each API lists: with a key for everything this must tell of French and of the second glossary, else of neither.
LISTS = (
    "/v1/models",
    "/v1/languages",
    "/v2/languages?type=source",
    "/v3/languages?resource=translate_text",
    "/v2/glossary-language-pairs",
    "/v2/glossaries",
    "/v3/glossaries",
    "/language/translate/v2/languages",
    f"{V3}/supportedLanguages",
    f"{V3}/glossaries",
    "/v2/models/stats",
)


@pytest.mark.parametrize("path", LISTS)
def test_a_key_is_shown_only_what_it_may_use(server: InProcessServer, path: str) -> None:
    everything, shown = (json.dumps(get(server, path, key)).lower() for key in (ALICE, SHOP))
    hidden = "secret" if path.endswith("/glossaries") else "fr"
    assert f'"{hidden}' in everything, everything
    assert f'"{hidden}' not in shown, shown
    assert any(name in shown for name in ('"brand', '"en', '"tiny'))


def test_models_are_listed_over_grpc_and_by_kserve(server: InProcessServer, shop: Client) -> None:
    assert [model.name for model in shop.models()] == ["tiny"]
    assert list(shop.models()[0].pairs()) == [("en", "de")]
    index = call(server.http_url, "POST", "/v2/repository/index", {}, x_api_key=SHOP).document
    assert [each["name"] for each in index] == ["tiny"]
    with grpc.insecure_channel(server.address) as channel:
        kserve = kserve_grpc.GRPCInferenceServiceStub(channel)
        names = kserve.RepositoryIndex(kserve_pb.RepositoryIndexRequest(), metadata=METADATA, timeout=patient(30))
        assert [each.name for each in names.models] == ["tiny"]
        ready = [
            kserve.ModelReady(kserve_pb.ModelReadyRequest(name=name), metadata=METADATA, timeout=patient(30)).ready
            for name in ("tiny", "fr-en")
        ]
        assert ready == [True, False]
        error = refused(kserve.ModelMetadata, kserve_pb.ModelMetadataRequest(name="fr-en"), metadata=METADATA)
        assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        google = google_grpc.TranslationServiceStub(channel)
        pages = google.ListGlossaries(google_pb.ListGlossariesRequest(parent="projects/p"), metadata=METADATA)
        assert [each.display_name for each in pages.glossaries] == ["brand"]


NAMED = {
    "v1": ("/v1/translate", {"texts": ["Bonjour"], "target_language_code": "en", "model": "fr-en"}),
    "google.v2": ("/language/translate/v2", {"q": "Bonjour", "source": "fr", "target": "en", "model": "fr-en"}),
    "google.v3": (
        f"{V3}:translateText",
        {
            "contents": ["Bonjour"],
            "targetLanguageCode": "en",
            "model": "projects/p/locations/global/models/fr-en",
        },
    ),
    "openai": (
        "/v1/chat/completions",
        {"model": "fr-en:fr-en", "messages": [{"role": "user", "content": "Bonjour"}]},
    ),
    "kserve": (
        "/v2/models/fr-en/infer",
        {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["Bonjour"]}]},
    ),
}


def told(reply: Reply) -> str:
    return reply.body.decode().replace('\\"', '"')


@pytest.mark.parametrize("api", NAMED)
def test_a_model_of_others_is_refused_by_name(server: InProcessServer, api: str) -> None:
    path, body = NAMED[api]
    reply = call(server.http_url, "POST", path, body, x_api_key=SHOP)
    assert reply.status == 403, reply.body
    assert "key shop may not use model 'fr-en'; it may use tiny." in told(reply)
    assert call(server.http_url, "POST", path, body, x_api_key=ALICE).status == 200


@pytest.mark.parametrize("name", [name for name in FACES if name != "kserve"])
def test_a_pair_of_others_is_refused_and_the_own_one_translated(server: InProcessServer, name: str) -> None:
    assert send(server, name, "Hello", x_api_key=SHOP).status == 200
    assert send(server, name, "Bonjour", "fr", "en", x_api_key=ALICE).status == 200
    reply = send(server, name, "Bonjour", "fr", "en", x_api_key=SHOP)
    assert reply.status in (400, 404), reply.body
    assert "key shop" in told(reply)
    assert "fr to" not in told(reply), "it tells of others' models"


def test_calls_over_grpc_are_refused(server: InProcessServer, shop: Client) -> None:
    with pytest.raises(ClientError, match=r"^key shop may not use model 'fr-en'; it may use tiny\.$") as raised:
        shop.translate(["Bonjour"], "fr", "en", model="fr-en")
    assert raised.value.code == "PERMISSION_DENIED"
    with pytest.raises(ClientError, match=r"^no model for key shop translates from 'fr' into 'de'"):
        list(shop.stream(["Bonjour"], "fr", "de"))  # by way of English, which takes both models
    with grpc.insecure_channel(server.address) as channel:
        request = infer_request("Bonjour")
        request.model_name = "fr-en"
        stub = kserve_grpc.GRPCInferenceServiceStub(channel)
        [answer] = stub.ModelStreamInfer(iter([request]), metadata=METADATA, timeout=patient(30))
    assert answer.error_message == "PERMISSION_DENIED: key shop may not use model 'fr-en'; it may use tiny."


def test_languages_are_detected_among_those_of_the_key(server: InProcessServer, shop: Client) -> None:
    [answer] = shop.translate(["Where is the train station?"], "", "de")
    assert answer.detected_language_code == "en"
    with server.client(api_key=ALICE) as alice:
        assert alice.translate(["Où est la gare ?"], "", "de")[0].detected_language_code == "fr"
    with pytest.raises(ClientError, match=r"^texts\[0\] seems to be in 'fr'; languages that .* into 'de' here: en;"):
        shop.translate(["Où est la gare ?"], "", "de")


def test_glossaries_of_others_are_refused(server: InProcessServer, shop: Client) -> None:
    [brand] = shop.translate(["window"], "en", "de", glossary="brand")
    assert "Zqbrand" in brand.text
    with pytest.raises(ClientError, match=r"^key shop may not use glossary 'secret'; it may use brand\.$") as raised:
        shop.translate(["window"], "en", "de", glossary="secret")
    assert raised.value.code == "PERMISSION_DENIED"
    [secret] = [
        each["glossary_id"] for each in get(server, "/v3/glossaries", ALICE)["glossaries"] if each["name"] == "secret"
    ]
    replies = {
        "deepl": call(
            server.http_url,
            "POST",
            "/v2/translate",
            {"text": ["window"], "source_lang": "EN", "target_lang": "DE", "glossary_id": secret},
            x_api_key=SHOP,
        ),
        "deepl entries": call(server.http_url, "GET", f"/v2/glossaries/{secret}/entries", x_api_key=SHOP),
        "google": call(server.http_url, "GET", f"{V3}/glossaries/secret.en-de", x_api_key=SHOP),
    }
    body, content_type = form_of("a.txt", "window", {"source_lang": "EN", "target_lang": "DE", "glossary_id": secret})
    replies["deepl document"] = call(
        server.http_url, "POST", "/v2/document", body=body, content_type=content_type, x_api_key=SHOP
    )
    for name, reply in replies.items():
        assert reply.status == 403, (name, reply.body)
        assert "key shop may not use glossary" in told(reply), name
        assert "it may use brand" in told(reply), name


def test_documents_are_translated_with_the_models_of_the_key(server: InProcessServer) -> None:
    for path, fields in (("/v1/files", "target_language_code"), ("/v2/document", "target_lang")):
        body, content_type = form_of("a.txt", "Bonjour", {fields: "en", fields.replace("target", "source"): "fr"})
        how: dict[str, Any] = {"body": body, "content_type": content_type}
        assert call(server.http_url, "POST", path, **how, x_api_key=ALICE).status == 200
        reply = call(server.http_url, "POST", path, **how, x_api_key=SHOP)
        assert reply.status in (400, 404), (path, reply.body)
        assert "key shop" in told(reply)


def test_a_key_loads_and_unloads_only_its_own(serve: Serve, tmp_path: Path) -> None:
    keys = write_keys(tmp_path, NO_QUOTAS, {"shop": {"models": ["other"]}}, alice=ALICE, shop=SHOP)
    server = serve(model_control="explicit", load_model=("tiny",), http_port=0, api_keys=keys)
    for action in ("load", "unload"):
        reply = call(server.http_url, "POST", f"/v2/repository/models/tiny/{action}", x_api_key=SHOP)
        assert reply.status == 403
        assert "key shop may not use model 'tiny'; it may use other." in told(reply)
        reply = call(server.http_url, "POST", f"/v2/repository/models/other/{action}", x_api_key=SHOP)
        assert reply.status == 404
        assert "tiny" not in told(reply), "it tells of others' models"
    assert call(server.http_url, "POST", "/v2/repository/models/tiny/unload", x_api_key=ALICE).status == 200


def test_grants_change_with_the_file_on_open_streams_too(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = write_keys(tmp_path, shop=SHOP)
    server = serve(api_keys=keys)
    names: list[str] = []

    def requests() -> Any:
        yield infer_request("Hello")
        replace(keys, key_lines(SHOP, "shop", None, NO_QUOTAS, {"models": ["tini"], "glossaries": ["brnd"]}).encode())
        with server.client(api_key=SHOP) as client:
            eventually(lambda: [model.name for model in client.models()] == names)
        yield infer_request("Hello")

    with grpc.insecure_channel(server.address) as channel:
        stub = kserve_grpc.GRPCInferenceServiceStub(channel)
        answers = stub.ModelStreamInfer(requests(), metadata=METADATA, timeout=patient(60))
        messages = [answer.error_message for answer in answers]
    assert messages == ["", "PERMISSION_DENIED: key shop may not use model 'tiny'; it may use tini."]
    wrong = f"{keys} (API keys): key shop may use"
    eventually(lambda: wrong in caplog.text)
    found = [record.getMessage() for record in caplog.records if wrong in record.getMessage()]
    assert found == [  # once, though the files are looked at twice a second
        f"{wrong} glossary 'brnd', which this server does not have; it has none.",
        f"{wrong} model 'tini', which this server does not have; it has tiny.",
    ]


def test_two_keys_of_one_name_are_good_while_callers_change(serve: Serve, tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    keys = write_keys(tmp_path, shop=old)
    server = serve(api_keys=keys)
    first, second = (key_lines(key, "shop", None, NO_QUOTAS).split('"')[1] for key in (old, new))

    def last_used(digest: str) -> float | None:
        label = frozenset({"key": "shop", "sha256": digest[:8]}.items())
        return server.metrics().get(("dragoman_key_last_used_seconds", label))

    def is_good(key: str) -> bool:
        with server.client(api_key=key) as client:
            return is_let_in(client)

    assert is_good(old)
    replace(keys, f'[keys.shop]\nsha256 = ["{first}", "{second}"]\n'.encode())
    eventually(lambda: is_good(new))
    assert is_good(old)
    used = last_used(first)
    assert used is not None
    assert used > 0
    assert is_good(new)
    assert last_used(first) == used, "what tells that the old one is no longer used"
    replace(keys, f'[keys.shop]\nsha256 = "{second}"\n'.encode())
    eventually(lambda: not is_good(old))
    assert is_good(new)
    assert last_used(first) is None
    assert server.metric("dragoman_key_requests_total", key="shop") >= 4
