"""Our own API over HTTP: the same translations, options, limits, keys and errors as over gRPC."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import BaseModel

from dragoman_client import Options
from service.domain.errors import DeadlineExceeded, EngineFailure
from service.domain.options import OPTIONS
from service.domain.translation import StreamEvent, TranslationRequest
from service.faces.dragoman import answers
from tests.http_caller import Reply, call, events
from tests.servers import InProcessServer, Serve, distinct_texts, eventually

ASKED = {"text": "station", "source_language_code": "en", "target_language_code": "de"}
SAMPLING = {"top_k", "top_p", "seed"}


@pytest.fixture(scope="module")
def server(share: Serve) -> InProcessServer:
    return share(http_port=0, http_origin=("https://example.org",))


def translate(server: InProcessServer, path: str = "/v1/translate", **asked: Any) -> Reply:
    return call(server.http_url, "POST", path, {**ASKED, **asked})


def test_a_stream_ends_with_the_same_translation(server: InProcessServer) -> None:
    [text] = distinct_texts(1)
    whole = translate(server, text=text).document["translations"][0]
    reply = translate(server, "/v1/translate/stream", text=text)
    assert reply.headers["content-type"] == "text/event-stream"
    found = events(reply.body)
    assert "".join(data["delta"] for name, data in found if not name) == whole["text"]
    assert found[-2][1]["translation"] == whole
    assert found[-1] == ("done", {"model": "tiny", "model_version": "1"})


def test_a_stream_that_can_not_begin_is_an_error_like_any_other(server: InProcessServer) -> None:
    reply = translate(server, "/v1/translate/stream", target_language_code="xx")
    assert reply.status == 404
    assert reply.error["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (DeadlineExceeded("the deadline passed"), "DEADLINE_EXCEEDED", "the deadline passed"),
        (EngineFailure("decoding failed"), "INTERNAL", "decoding failed"),
        (KeyError("a bug of ours"), "INTERNAL", "internal error; see request order-68 in the server's log"),
    ],
    ids=["deadline", "engine", "bug"],
)
def test_a_stream_that_fails_after_its_first_event_ends_with_the_error(
    server: InProcessServer, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, word: str
) -> None:
    stream = server.server.translator.stream

    async def failing(request: TranslationRequest) -> AsyncGenerator[StreamEvent]:
        async with aclosing(stream(request)) as events_of_stream:
            yield await anext(events_of_stream)
            raise error

    monkeypatch.setattr(server.server.translator, "stream", failing)
    labels = {"method": "http/v1/translate_stream", "code": code}
    before = server.metric("dragoman_requests_total", **labels)
    reply = call(server.http_url, "POST", "/v1/translate/stream", ASKED, x_request_id="order-68")
    assert (reply.status, reply.headers["x-request-id"]) == (200, "order-68")
    [(first, delta), (last, document)] = events(reply.body)
    assert (first, last) == ("", "error")
    assert delta["delta"]
    told = document["error"]
    assert word in told["message"]
    assert (told["code"], told["request_id"]) == (code, "order-68")
    eventually(lambda: server.metric("dragoman_requests_total", **labels) == before + 1)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_taken_and_checked(server: InProcessServer, name: str) -> None:
    option = OPTIONS[name]
    others: dict[str, Any] = {"temperature": 0.7, "num_hypotheses": 1} if name in SAMPLING else {}
    good: Any = True if option.kind is bool else option.kind(2)
    if name == "top_p":
        good = 0.5
    if name in SAMPLING or name == "temperature":
        others["seed"] = 7
    chosen = {**others, name: good}
    reply = translate(server, options=chosen)
    assert reply.status == 200, reply.body
    with server.client() as client:
        [expected] = client.translate(["station"], "en", "de", options=Options(**chosen))
    assert reply.document["translations"][0]["text"] == expected.text

    wrong = translate(server, options={**others, name: "2"})
    assert wrong.status == 400
    assert wrong.error["field"] == f"options.{name}"
    if option.high is not None:
        above = translate(server, options={**others, name: option.kind(option.high * 2 + 1)})
        assert (above.status, above.error["field"]) == (400, f"options.{name}")
        assert above.error["allowed"]


def test_what_a_call_can_ask_for_is_in_the_answer(server: InProcessServer) -> None:
    options = {"num_hypotheses": 2, "return_scores": True}
    reply = translate(server, options=options, return_segments=True, return_alignments=True)
    [translation] = reply.document["translations"]
    assert len(translation["hypotheses"]) == 2
    assert translation["hypotheses"][0]["score"] >= translation["hypotheses"][1]["score"]
    [segment] = translation["segments"]
    assert (segment["source_start"], segment["source_end"]) == (0, len("station"))
    html = translate(server, text="<b>station</b>", mime_type="text/html")
    assert html.document["translations"][0]["text"].startswith("<b>")
    kept = translate(server, terms=[{"source": "station", "target": "Hbf"}])
    assert kept.document["translations"][0]["text"] == "Hbf"
    for own in ({"pattern": "st[a-z]+"}, {"start": "st", "end": "on"}):
        protected = translate(server, placeholders=[own])
        assert protected.document["translations"][0]["text"] == "station"


@pytest.mark.parametrize(
    ("body", "field", "word"),
    [
        (b'{"texts": ["a", 1], "target_language_code": "de"}', "texts[1]", "a string"),
        (b'{"text": "a", "target_language_code": "de", "options": {"beam_size": 1e400}}', "options.beam_size", "whole"),
        (b'{"text": "a", "target_language_code": "de", "deadline": NaN}', "deadline", "above 0"),
        (b'{"text": "\\ud800", "target_language_code": "de"}', "text", ""),
        (b'{"text": "\xff", "target_language_code": "de"}', "", ""),
        (json.dumps({"texts": ["a"] * 1025, "target_language_code": "de"}).encode(), "texts", "1024"),
    ],
)
def test_a_wrong_body_is_a_400_that_names_the_field(
    server: InProcessServer, body: bytes, field: str, word: str
) -> None:
    reply = call(server.http_url, "POST", "/v1/translate", body=body, content_type="application/json")
    assert reply.status == 400, reply.body
    assert reply.error["code"] == "INVALID_ARGUMENT"
    assert reply.error.get("field", "") == field
    assert word in reply.error["message"]
    assert reply.error["request_id"] == reply.headers["x-request-id"]


def test_another_content_type_is_refused(server: InProcessServer) -> None:
    reply = call(server.http_url, "POST", "/v1/translate", body=b"text=a", content_type="application/xml")
    assert (reply.status, reply.error["allowed"]) == (400, "application/json")


def test_a_deadline_that_can_not_be_met_is_a_504(server: InProcessServer) -> None:
    reply = translate(server, deadline=0.001)
    assert (reply.status, reply.error["code"]) == (504, "DEADLINE_EXCEEDED")


def test_languages_are_detected_and_listed(server: InProcessServer) -> None:
    texts = ["Where is the train station?", "Wo ist der Bahnhof?"]
    detected = call(server.http_url, "POST", "/v1/detect", {"texts": texts}).document["detections"]
    assert [each["languages"][0]["language_code"] for each in detected] == ["en", "de"]
    languages = call(server.http_url, "GET", "/v1/languages").document["languages"]
    assert {"language_code": "en", "name": "English", "targets": ["de"]} in languages
    [model] = call(server.http_url, "GET", "/v1/models").document["models"]
    assert (model["name"], model["default_options"]["beam_size"]) == ("tiny", 1)


def test_pages_of_listed_sites_may_call(server: InProcessServer) -> None:
    asked: dict[str, Any] = {"origin": "https://example.org", "access_control_request_method": "POST"}
    allowed = call(
        server.http_url, "OPTIONS", "/v1/translate", access_control_request_headers="content-type,x-api-key", **asked
    )
    assert allowed.status == 200
    assert allowed.headers["access-control-allow-origin"] == "https://example.org"
    assert allowed.headers["access-control-allow-headers"] == "content-type,x-api-key"
    reply = call(server.http_url, "POST", "/v1/translate", ASKED, origin="https://example.org")
    assert reply.headers["access-control-allow-origin"] == "https://example.org"
    other = call(server.http_url, "POST", "/v1/translate", ASKED, origin="https://example.com")
    assert (other.status, other.error["code"]) == (403, "PERMISSION_DENIED")
    assert "access-control-allow-origin" not in other.headers
    asked["origin"] = "https://example.com"
    assert call(server.http_url, "OPTIONS", "/v1/translate", **asked).status == 405


def test_answers_are_as_the_openapi_document_says(server: InProcessServer) -> None:
    options = {"num_hypotheses": 2, "return_scores": True}
    asked = {**ASKED, "options": options, "return_segments": True, "return_alignments": True}
    replies: list[tuple[type[BaseModel], Any]] = [
        (answers.TranslateResponse, call(server.http_url, "POST", "/v1/translate", asked).document),
        (answers.DetectResponse, call(server.http_url, "POST", "/v1/detect", {"text": "Hello there"}).document),
        (answers.LanguagesResponse, call(server.http_url, "GET", "/v1/languages").document),
        (answers.ModelsResponse, call(server.http_url, "GET", "/v1/models").document),
        (answers.Error, call(server.http_url, "POST", "/v1/translate", {}).document),
    ]
    for kind, document in replies:
        assert kind.model_validate(document).model_dump(exclude_unset=True) == document
    paths = call(server.http_url, "GET", "/v1/openapi.json").document["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            reply = call(server.http_url, method.upper(), path)
            assert reply.status in (200, 400)
            described = operation["responses"][str(reply.status)]
            assert described["headers"].keys() <= reply.headers.keys()
            assert reply.headers["content-type"].partition(";")[0] in described["content"]
