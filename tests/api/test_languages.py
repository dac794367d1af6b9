"""Languages of texts: detected, listed and chosen; and by every API what becomes of texts that need no translation."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dragoman_client import Client, Flag
from tests.api.http_faces import FACES, send
from tests.http_caller import Reply, call, events
from tests.http_post import form_of
from tests.servers import REPOSITORY, InProcessServer, Serve
from tests.texts_in_languages import rows
from tests.tiny_bundle import write_tiny_bundle

ENGLISH, FRENCH, HINDI = "Where is the train station?", "Où se trouve la gare ?", "स्टेशन कहाँ है?"
APIS = pytest.mark.parametrize("name", [name for name in FACES if name != "kserve"])


@pytest.fixture(scope="module")
def server(share: Serve) -> InProcessServer:
    return share(models=REPOSITORY / "models", http_port=0, num_threads=1)


@pytest.fixture(scope="module")
def client(server: InProcessServer) -> Iterator[Client]:
    with server.client() as client:
        yield client


# A language's texts of one word, some words, and a sentence.
SOME = [row for number, row in enumerate(rows()) if number % 51 in (0, 6, 16, 26, 46)]


def test_all_outcomes_are_among_them() -> None:
    assert {"translated", "unchanged", "fr", "ru"} <= {row.outcome for row in SOME}


@APIS
def test_each_api_translates_keeps_or_refuses(server: InProcessServer, name: str) -> None:
    for row in SOME:
        answer = send(server, name, row.text, "", row.target)
        if row.outcome not in ("translated", "unchanged"):
            assert answer.status == 400, row
            assert f"seems to be in '{row.outcome}'" in answer.body.decode(), row
            continue
        assert answer.status == 200, (row, answer.body)
        text, language = FACES[name].answered(answer.document), FACES[name].detected(answer.document)
        assert text == row.text or row.outcome == "translated"
        if language:
            assert (language == row.target) == (row.outcome == "unchanged"), row


@APIS
def test_a_language_into_itself_is_unchanged_in_any_region(server: InProcessServer, name: str) -> None:
    for source, target in (("en", "en"), ("en-US", "en-GB"), ("hi", "hi")):
        answer = send(server, name, "  <b>Hello,\tworld</b>  ", source, target)
        assert answer.status == 200, (source, target, answer.body)
        assert FACES[name].answered(answer.document) == "  <b>Hello,\tworld</b>  "
    assert send(server, name, "Bonjour", "fr", "fr").status in (400, 404)  # not served


def test_kserve_names_a_model_and_so_its_pair(server: InProcessServer) -> None:
    def texts(source: str, target: str, model: str) -> Reply:
        asked = FACES["kserve"].asked(ENGLISH, source, target)
        return call(server.http_url, "POST", f"/v2/models/{model}/infer", asked)

    same = texts("en", "en", "de-en").document["outputs"]
    assert [each["data"] for each in same] == [[ENGLISH], ["stop"]]
    assert texts("", "de", "en-de").document["outputs"][0]["data"] == ["Wo ist der Bahnhof?"]


def test_our_own_api_flags_what_is_unchanged(client: Client) -> None:
    texts = [ENGLISH, "Guten Morgen", "42", "How are you?"]
    first, morning, number, last = client.translate(texts, "", "en")
    for text, each in ((texts[0], first), (texts[3], last)):
        assert (each.text, each.detected_language_code, each.num_source_tokens) == (text, "en", 0)
        (segment,) = each.segments
        assert segment.flags == (Flag.TARGET_LANGUAGE,)
        assert (segment.source_start, segment.source_end, segment.target_end) == (0, len(text), len(text))
    assert (morning.text, morning.detected_language_code) == ("Good morning", "de")
    assert (number.detected_language_code, number.segments) == ("und", ())
    (given,) = client.translate([ENGLISH], "en-US", "en-GB")
    assert (given.text, given.detected_language_code, given.segments[0].flags) == (ENGLISH, "", (Flag.TARGET_LANGUAGE,))


def test_streams_send_it_whole(server: InProcessServer, client: Client) -> None:
    received = list(client.stream([ENGLISH, "Guten Morgen"], "", "en"))
    (whole,) = [event for event in received if event.text_index == 0]
    assert whole.delta == ENGLISH
    assert whole.translation is not None
    assert whole.translation.segments[0].flags == (Flag.TARGET_LANGUAGE,)
    assert "".join(event.delta for event in received if event.text_index == 1) == "Good morning"
    (given,) = client.stream([ENGLISH], "en", "en")
    assert given.delta == ENGLISH
    document = {"text": ENGLISH, "target_language_code": "en"}
    answer = call(server.http_url, "POST", "/v1/translate/stream", document)
    assert events(answer.body)[0][1]["translation"]["flags"] == ["target_language"]


def test_a_document_is_judged_by_its_beginning(server: InProcessServer) -> None:
    def send(text: str, target: str) -> Reply:
        body, kind = form_of("a.md", text.encode(), {"target_language_code": target})
        return call(server.http_url, "POST", "/v1/files", body=body, content_type=kind)

    document = "# Train station\n\nWhere *is* the   train station?\n\nWo?\n"
    kept = send(document, "en")
    assert (kept.status, kept.body.decode()) == (200, document)
    assert kept.headers["x-document-notes"] == "3 texts were flagged: 3 target_language."
    assert "Bahnhof" in send(document, "de").body.decode()
    refused = send("# La gare\n\nOù est la gare, s'il vous plaît ?\n", "en")
    assert (refused.status, refused.error["field"]) == (400, "file")
    assert "seems to be in 'fr'" in refused.error["message"]


@pytest.fixture(scope="module")
def several_models(share: Serve, tmp_path_factory: pytest.TempPathFactory) -> InProcessServer:
    models = tmp_path_factory.mktemp("models")
    write_tiny_bundle(models / "many" / "1", "many", seed=9, among="eng_Latn fra_Latn hin_Deva zho_Hant")
    write_tiny_bundle(models / "italian" / "1", "italian", "en", "it", seed=3)
    return share(models=models, max_slots=4, pivot_language=("none",), http_port=0)


@pytest.fixture(scope="module")
def several(several_models: InProcessServer) -> Iterator[Client]:
    with several_models.client() as client:
        yield client


def test_models_are_listed_with_canonical_codes_which_lead_back_to_them(several: Client) -> None:
    italian, many = several.models()
    assert italian.pivoted_pairs == many.pivoted_pairs == ()  # it is switched off
    assert italian.language_pairs == (("en", "it"),)
    assert many.any_to_any_language_codes == ("en", "fr", "hi", "zh-Hant")
    for model in (italian, many):
        for source, target in model.pairs():
            assert several.translate([ENGLISH], source, target)[0].text


def test_each_text_is_translated_from_its_own_language(several: Client) -> None:
    texts = [ENGLISH, "42", HINDI, "", FRENCH, ENGLISH]
    translations = several.translate(texts, "", "zh-TW")
    assert [each.detected_language_code for each in translations] == ["en", "und", "hi", "und", "fr", "en"]
    for text, translation in zip(texts, translations, strict=True):
        if translation.detected_language_code == "und":
            assert (translation.text, translation.num_source_tokens) == (text, 0)
        else:
            (expected,) = several.translate([text], translation.detected_language_code, "zh-TW")
            assert expected.detected_language_code == ""
            assert (translation.text, translation.hypotheses) == (expected.text, expected.hypotheses)


def test_with_a_target_that_is_translated_itself_texts_are_not_kept(
    share: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    models = tmp_path_factory.mktemp("models")
    write_tiny_bundle(models / "corrects" / "1", "corrects", "en", "en", seed=5)
    write_tiny_bundle(models / "american" / "1", "american", "en-US", "en-GB", seed=6)
    with share(models=models, max_slots=4).client() as own:
        for source, target in (("", "en"), ("en", "en"), ("", "en-GB"), ("en-US", "en-GB")):
            (translation,) = own.translate([ENGLISH], source, target)
            assert translation.num_source_tokens > 0
            assert Flag.TARGET_LANGUAGE not in translation.segments[0].flags
        (kept,) = own.translate([ENGLISH], "en-GB", "en-GB", model="corrects")
        assert kept.num_source_tokens > 0  # the nearest pair of the named model


def test_detection_knows_more_languages_than_are_served(several: Client) -> None:
    texts = [ENGLISH, "Wo ist hier der Bahnhof?", "123", HINDI, "Hi"]
    english, german, number, hindi, short = several.detect(texts)
    found = (english, german, number, hindi, short)
    assert [each[0].language_code for each in found] == ["en", "de", "und", "hi", "und"]
    assert number[0].confidence == short[0].confidence == 0.0
    assert english[0].confidence > 0.9
    assert [each.confidence for each in hindi] == sorted((each.confidence for each in hindi), reverse=True)
    assert len(several.detect(["Hi, how?"] * 1024)) == 1024


V3 = "/v3/projects/p/locations/global:"
DETECTIONS: dict[str, tuple[str, str, Callable[[Any], str]]] = {
    "v1": ("/v1/detect", "text", lambda answer: answer["detections"][0]["languages"][0]["language_code"]),
    "libretranslate": ("/detect", "q", lambda answer: answer[0]["language"]),
    "google.v2": ("/language/translate/v2/detect", "q", lambda answer: answer["data"]["detections"][0][0]["language"]),
    "google.v3": (f"{V3}detectLanguage", "content", lambda answer: answer["languages"][0]["languageCode"]),
}


@pytest.mark.parametrize("name", DETECTIONS)
def test_what_an_api_detects_it_also_translates_from(several_models: InProcessServer, name: str) -> None:
    """The served codes, and `und` for a text that may be in many languages or has none."""
    path, field, language_of = DETECTIONS[name]
    for text in (ENGLISH, FRENCH, HINDI, "圖書館在哪裡？", "图书馆在哪里？", "OK", "42"):
        found = language_of(call(several_models.http_url, "POST", path, {field: text}).document)
        answer = send(several_models, name, text, found, "fr" if text != FRENCH else "en")
        assert answer.status == 200, (text, found, answer.body)
