"""OpenAI's API: what its clients send is translated, whole or as it grows; and what translations don't have."""

import json
from typing import Any

import pytest

from tests.http_caller import Reply, call
from tests.servers import InProcessServer, distinct_texts

PATH = "/v1/chat/completions"
WRONG_PART = ("messages[0].content[0]", "invalid_argument")


def ask(server: InProcessServer, content: Any = "station", **more: Any) -> Reply:
    messages = [{"role": "system", "content": "Translate."}, {"role": "user", "content": content}]
    return call(server.http_url, "POST", PATH, {"model": "en-de", "messages": messages, **more})


def expected(server: InProcessServer, text: str) -> Any:
    return call(server.http_url, "POST", "/v1/translate", {"text": text, "target_language_code": "de"}).document


def test_a_message_in_parts_is_translated(server: InProcessServer) -> None:
    [text] = distinct_texts(1)
    one = expected(server, f"station\n{text}")["translations"][0]
    parts = [{"type": "text", "text": "station"}, {"type": "text", "text": text}]
    document = ask(server, parts, model="dragoman/tiny:en-de", temperature=0.7, user="u", stop=None).document
    [choice] = document["choices"]
    assert choice["message"] == {"role": "assistant", "content": one["text"]}
    assert (document["object"], document["model"]) == ("chat.completion", "dragoman/tiny:en-de")
    usage = document["usage"]
    assert usage["prompt_tokens"] == one["num_source_tokens"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > usage["prompt_tokens"]


def test_a_stream_has_the_same_text(server: InProcessServer) -> None:
    [text] = distinct_texts(1)
    whole = ask(server, text).document
    reply = ask(server, text, stream=True, stream_options={"include_usage": True})
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
    assert '"usage"' not in ask(server, text, stream=True).body.decode()


def test_several_choices_and_the_most_tokens(server: InProcessServer) -> None:
    choices = ask(server, "station house garden", n=3).document["choices"]
    assert [each["index"] for each in choices] == [0, 1, 2]
    for name in ("max_tokens", "max_completion_tokens"):
        short = ask(server, "station house garden", **{name: 1}).document
        assert (short["choices"][0]["finish_reason"], short["usage"]["completion_tokens"]) == ("length", 1)
        assert ask(server, **{name: 4096}).status == 200


def test_models_are_the_pairs(server: InProcessServer) -> None:
    document = call(server.http_url, "GET", "/v1/models").document
    assert document["object"] == "list"
    assert [each["name"] for each in document["models"]] == ["tiny"]
    for entry in document["data"]:
        for name in (entry["id"], f"dragoman/{entry['id']}"):
            found = call(server.http_url, "GET", f"/v1/models/{name}").document
            assert found == {**entry, "id": name}
    assert call(server.http_url, "GET", "/v1/models/gpt-4o").status == 404


@pytest.mark.parametrize(
    ("wrong", "status", "param", "code"),
    [
        ({"model": "gpt-4o"}, 404, "model", "model_not_found"),
        ({"messages": [{"role": "system", "content": "x"}]}, 400, "messages", "invalid_argument"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, *WRONG_PART),
        ({"n": 9}, 400, "n", "invalid_argument"),
        ({"n": 2, "stream": True}, 400, "n", "unimplemented"),
        ({"tools": [{"type": "function"}]}, 400, "tools", "unimplemented"),
        ({"messages": [{"role": "user", "content": "x" * 200_000}]}, 400, "messages", "invalid_argument"),
    ],
)
def test_what_is_wrong_is_told_in_openai_s_words(
    server: InProcessServer, wrong: dict[str, Any], status: int, param: str, code: str
) -> None:
    reply = ask(server, **wrong)
    error = reply.document["error"]
    assert (reply.status, error["param"], error["code"]) == (status, param, code), error
    assert error["type"] == "invalid_request_error"
    assert error["message"].endswith(".")
