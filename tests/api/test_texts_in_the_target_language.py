"""Texts without a source language, by every API on the shipped models: translated, unchanged or refused."""

from collections.abc import Iterator

import pytest

from dragoman_client import Client, Flag
from tests.api.http_faces import FACES, send
from tests.http_caller import Reply, call, events
from tests.http_post import form_of
from tests.servers import REPOSITORY, InProcessServer, Serve
from tests.texts_in_languages import rows

ENGLISH = "Where is the train station?"
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
