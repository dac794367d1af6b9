"""Pairs that no model has: two models translate them, by way of a language that they share."""

import random
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman_client import Client, ClientError, MimeType, Options, StreamEvent, Term
from tests.api.http_faces import FACES, send
from tests.grpc_calls import request_of, stub_of
from tests.http_caller import call
from tests.key_files import ALICE, write_keys
from tests.servers import InProcessServer, Serve, distinct_texts, eventually
from tests.tiny_bundle import GOLDEN_TEXTS, put_bundle, write_tiny_bundle

FRENCH_TO_GERMAN = {"source_language_code": "fr", "target_language_code": "de"}
NUM_MOMENTS = 20


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, tiny_bundle: Path) -> Path:
    """Return a repository of a model from French to English and one from English to German."""
    models = tmp_path_factory.mktemp("models")
    french = write_tiny_bundle(tmp_path_factory.mktemp("french") / "1", "fr-en", "fr", "en", seed=5)
    put_bundle(models, tiny_bundle, "tiny", "1")
    put_bundle(models, french, "fr-en", "1")
    return models


@pytest.fixture(scope="module")
def server(share: Serve, models: Path) -> InProcessServer:
    return share(models=models, max_slots=8, http_port=0)


@pytest.fixture(scope="module")
def client(server: InProcessServer) -> Iterator[Client]:
    with server.client() as client:
        yield client


@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.full)])
def test_it_is_what_two_calls_give_token_for_token(client: Client, count: int) -> None:
    texts = distinct_texts(count)
    pivoted = client.translate(texts, "fr", "de")
    first = client.translate(texts, "fr", "en")
    second = client.translate([each.text for each in first], "en", "de")
    assert [(each.text, each.hypotheses) for each in pivoted] == [(each.text, each.hypotheses) for each in second]
    assert {each.pivot_language_code for each in pivoted} == {"en"}
    assert {each.pivot_language_code for each in (*first, *second)} == {""}
    assert [each.text for each in first] != [each.text for each in second]  # both models did something


def test_several_sentences_of_a_text_are_translated_each(client: Client) -> None:
    text = "Where is the train station?\n\n - Save the file.\nHello"
    [pivoted] = client.translate([text], "fr", "de")
    lines = [client.translate([line], "fr", "de")[0].text for line in GOLDEN_TEXTS]
    assert pivoted.text == f"{lines[0]}\n\n - {lines[1]}\n{lines[2]}"
    assert [text[each.source_start : each.source_end] for each in pivoted.segments] == list(GOLDEN_TEXTS)
    assert [pivoted.text[each.target_start : each.target_end] for each in pivoted.segments] == lines


def test_placeholders_tags_and_terms_are_kept_through_both(client: Client) -> None:
    text = "<p>Save the <b>file</b> before {name} and %d <i>close</i> the window.</p><hr><p>Hello</p>"
    [html] = client.translate([text], "fr", "de", mime_type=MimeType.HTML)
    for part in ("<p>", "<b>", "</b>", "{name}", "%d", "<i>", "</i>", "<hr>"):
        assert html.text.count(part) == text.count(part), part
    terms = [Term("window", "Zqfenster"), Term("Hello", "Zqhallo")]
    for _ in range(2):
        [plain] = client.translate(["Hello, save the window before {0} you."], "fr", "de", terms=terms)
        assert [plain.text.count(part) for part in ("Zqfenster", "Zqhallo", "{0}")] == [1, 1, 1]


def test_a_glossary_of_the_pair_is_used(serve: Serve, models: Path, tmp_path: Path) -> None:
    (tmp_path / "own.fr-de.tsv").write_text("window\tZqfenster\n", encoding="utf-8")
    server = serve(models=models, glossaries=tmp_path, max_slots=4)
    with server.client() as client:
        [found] = client.translate(["Save the window."], "fr", "de", glossary="own")
    assert found.text.count("Zqfenster") == 1


def test_the_beginning_of_the_translation_can_be_given(server: InProcessServer, client: Client) -> None:
    texts = ["Save the file. Where is the train?", "Hello"]
    prefixes, options = ["Hallo, kannst", "Die Datei"], Options(check_numbers=False)
    found = client.translate(texts, "fr", "de", target_prefixes=prefixes, options=options)
    assert found[0].text.startswith("Hallo, kannst")
    assert found[1].text.startswith("Die Datei")
    decoded = server.metric("dragoman_sentences_total", model="fr-en", outcome="ok")
    with pytest.raises(ClientError, match=r"target_prefixes\[1\] has characters"):
        client.translate(texts, "fr", "de", target_prefixes=["", "漢字"])
    assert server.metric("dragoman_sentences_total", model="fr-en", outcome="ok") == decoded


def test_alignments_lead_from_the_source_to_the_translation(client: Client) -> None:
    text = "Where is the train station? Save {name}."
    [found] = client.translate([text], "fr", "de", return_alignments=True)
    links = found.alignment
    assert {text[each.source_start : each.source_end] for each in links} <= {*re.findall(r"\w+|[?.]", text), "{name}"}
    assert len(links) > 3
    assert all(0 <= each.target_start < each.target_end <= len(found.text) for each in links)
    [kept] = [each for each in links if text[each.source_start : each.source_end] == "{name}"]
    assert found.text[kept.target_start : kept.target_end] == "{name}"


def test_candidates_are_the_second_models(client: Client) -> None:
    [first] = client.translate([GOLDEN_TEXTS[0]], "fr", "en", options=Options(return_scores=True))
    wanted = Options(num_hypotheses=3, return_scores=True)
    [second] = client.translate([first.text], "en", "de", options=wanted)
    [found] = client.translate([GOLDEN_TEXTS[0]], "fr", "de", options=wanted)
    assert [each.text for each in found.hypotheses] == [each.text for each in second.hypotheses]
    for own, by_hand in zip(found.hypotheses, second.hypotheses, strict=True):
        parts = (first.hypotheses[0], by_hand)
        mean = sum((each.score or 0.0) * each.num_tokens for each in parts) / sum(each.num_tokens for each in parts)
        assert own.score == pytest.approx(mean)
    sampled = Options(num_hypotheses=3, temperature=1.0, seed=3)
    [some] = client.translate([GOLDEN_TEXTS[0]], "fr", "de", options=sampled)
    assert len(some.hypotheses) == 3
    assert client.translate([GOLDEN_TEXTS[0]], "fr", "de", options=sampled)[0] == some


def test_a_stream_ends_with_the_same(client: Client) -> None:
    texts = [f"{first}. {second}. Hello" for first, second in zip(distinct_texts(5), distinct_texts(5), strict=True)]
    events: list[StreamEvent] = list(client.stream(texts, "fr", "de"))
    whole = client.translate(texts, "fr", "de")
    for index, translation in enumerate(whole):
        own = [event for event in events if event.text_index == index]
        assert "".join(event.delta for event in own) == translation.text
        assert own[-1].translation == translation


@pytest.mark.parametrize("method", ["Translate", "TranslateStream"])
def test_a_call_that_is_cancelled_frees_both(server: InProcessServer, method: str) -> None:
    chance = random.Random(11)
    second = next(model for model in server.server.models if model.name == "tiny")
    seen_in_second = 0
    with stub_of(server.address) as stub:
        for _ in range(NUM_MOMENTS):
            request = request_of(distinct_texts(200), **FRENCH_TO_GERMAN)
            running = stub.Translate.future(request) if method == "Translate" else stub.TranslateStream(request)
            if chance.random() < 0.5:
                eventually(lambda: second.engine.snapshot().num_running > 0)
            threading.Event().wait(chance.uniform(0.0, 0.05))
            seen_in_second += second.engine.snapshot().num_running > 0
            running.cancel()
            eventually(server.is_idle, timeout_seconds=2)
    assert seen_in_second > NUM_MOMENTS // 5, "some were cancelled while the second model was at work"


def test_quotas_count_what_both_models_read_and_write(serve: Serve, models: Path, tmp_path: Path) -> None:
    server = serve(models=models, api_keys=write_keys(tmp_path, alice=ALICE))
    texts = distinct_texts(20)
    with server.client(api_key=ALICE) as client:

        def charged(texts: list[str], source: str, target: str) -> tuple[float, list[str]]:
            before = server.metric("dragoman_key_tokens_total", key="alice")
            found = client.translate(texts, source, target)
            return server.metric("dragoman_key_tokens_total", key="alice") - before, [each.text for each in found]

        first, between = charged(texts, "fr", "en")
        second, _ = charged(between, "en", "de")
        both, _ = charged(texts, "fr", "de")
    assert both == first + second
    assert min(first, second) > 0


def test_every_list_of_pairs_has_them(server: InProcessServer, client: Client) -> None:
    by_name = {model.name: model for model in client.models()}
    assert by_name["tiny"].pivoted_pairs == (("fr", "de", "en"),)
    assert by_name["fr-en"].pivoted_pairs == ()

    def get(path: str) -> Any:
        return call(server.http_url, "GET", path).document

    assert {each["code"]: each["targets"] for each in get("/languages")}["fr"] == ["de", "en"]
    assert {each["language_code"]: each["targets"] for each in get("/v1/languages")["languages"]}["fr"] == ["de", "en"]
    assert "fr-de" in [each["id"] for each in get("/v1/models")["data"]]
    assert {"source_lang": "fr", "target_lang": "de"} in get("/v2/glossary-language-pairs")["supported_languages"]


@pytest.mark.parametrize("name", [name for name in FACES if name != "kserve"])
def test_every_face_translates_them(server: InProcessServer, client: Client, name: str) -> None:
    [expected] = client.translate([GOLDEN_TEXTS[0]], "fr", "de")
    document = send(server, name, GOLDEN_TEXTS[0], "fr", "de").document
    assert FACES[name].answered(document) == expected.text
    if name == "v1":
        assert document["translations"][0]["pivot_language_code"] == "en"


def test_a_detected_language_may_need_one(client: Client) -> None:
    text = "Bonjour, pouvez-vous m'aider à trouver mes clés, s'il vous plaît ?"
    [found] = client.translate([text], "", "de")
    assert (found.detected_language_code, found.pivot_language_code) == ("fr", "en")
    assert found.text == client.translate([text], "fr", "de")[0].text
