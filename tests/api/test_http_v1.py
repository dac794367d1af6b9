"""What only APIs under /v1 have: streams of server-sent events, models as OpenAI lists them, and a description."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import BaseModel

from service.domain.errors import DeadlineExceeded, EngineFailure
from service.domain.translation import StreamEvent, TranslationRequest
from service.faces.dragoman import answers
from tests.http_caller import Reply, call, events
from tests.servers import InProcessServer, distinct_texts, eventually

ASKED = {"text": "station", "source_language_code": "en", "target_language_code": "de"}


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


def test_a_deadline_that_can_not_be_met_is_a_504(server: InProcessServer) -> None:
    reply = translate(server, deadline=0.001)
    assert (reply.status, reply.error["code"]) == (504, "DEADLINE_EXCEEDED")


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


def chat(server: InProcessServer, text: str, **more: Any) -> Reply:
    asked = {"model": "en-de", "messages": [{"role": "user", "content": text}], **more}
    return call(server.http_url, "POST", "/v1/chat/completions", asked)


def test_a_stream_of_openai_has_the_same_text(server: InProcessServer) -> None:
    [text] = distinct_texts(1)
    whole = chat(server, text).document
    reply = chat(server, text, stream=True, stream_options={"include_usage": True})
    assert reply.headers["content-type"] == "text/event-stream"
    *events, done = reply.body.decode().removesuffix("\n\n").split("\n\n")
    assert done == "data: [DONE]"
    *chunks, usage = [json.loads(event.removeprefix("data: ")) for event in events]
    assert {each["object"] for each in chunks} == {"chat.completion.chunk"}
    deltas = [each["choices"][0]["delta"] for each in chunks]
    assert deltas[0]["role"] == "assistant"
    assert deltas[-1] == {}
    assert "".join(delta.get("content", "") for delta in deltas) == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert (usage["choices"], usage["usage"]) == ([], whole["usage"])
    assert '"usage"' not in chat(server, text, stream=True).body.decode()
    asked = {"model": "en-de", "input": text, "stream": True}
    response = call(server.http_url, "POST", "/v1/responses", asked).body.decode().removesuffix("\n\n")
    names, found = zip(
        *(event.removeprefix("event: ").split("\ndata: ") for event in response.split("\n\n")), strict=True
    )
    documents = [json.loads(each) for each in found]
    assert [each["type"] for each in documents] == [*names]
    assert [each["sequence_number"] for each in documents] == [*range(len(documents))]
    told = whole["choices"][0]["message"]["content"]
    assert "".join(each.get("delta", "") for each in documents) == told
    assert documents[-1]["response"]["output"][0]["content"][0]["text"] == told
    assert documents[-1]["response"]["usage"]["total_tokens"] == whole["usage"]["total_tokens"]
    assert (names[0], names[-1]) == ("response.created", f"response.{documents[-1]['response']['status']}")


def test_models_of_openai_are_the_pairs(server: InProcessServer) -> None:
    document = call(server.http_url, "GET", "/v1/models").document
    assert document["object"] == "list"
    assert [each["name"] for each in document["models"]] == ["tiny"]
    for entry in document["data"]:
        for name in (entry["id"], f"dragoman/{entry['id']}"):
            assert call(server.http_url, "GET", f"/v1/models/{name}").document == {**entry, "id": name}
    assert call(server.http_url, "GET", "/v1/models/gpt-4o").status == 404
