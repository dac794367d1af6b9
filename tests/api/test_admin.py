"""The admin listener over real HTTP: numbers, translations, models, and what other web pages cannot do."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman_client import Client, ClientError
from service.calls.keys import Quotas
from tests.api.http_faces import url_of
from tests.http_caller import call
from tests.key_files import ALICE, write_keys
from tests.servers import InProcessServer, Serve, distinct_texts, eventually

JSON = {"Content-Type": "application/json"}
HELLO = {"texts": ["Hello"], "source_language_code": "en", "target_language_code": "de"}


def ask(
    server: InProcessServer,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] = JSON,
) -> tuple[int, Any]:
    """Return the status, and the document or the bytes; the headers are in `server.admin_headers`."""
    content = None if body is None else json.dumps(body).encode()
    reply = call(url_of(server, "operators"), method, path, body=content, **headers)
    server.admin_headers = reply.headers  # type: ignore[attr-defined]
    is_json = reply.headers["content-type"] == JSON["Content-Type"]
    return reply.status, reply.document if is_json else reply.body


def status(server: InProcessServer) -> Any:
    return ask(server, "GET", "/status.json")[1]


def test_the_page_is_in_the_language_that_is_asked_for(server: InProcessServer) -> None:
    assert b'<html lang="de"' in ask(server, "GET", "/?lang=de")[1]


@pytest.mark.parametrize("path", ["/", "/status"])
def test_a_page_comes_with_its_policy(server: InProcessServer, path: str) -> None:
    code, page = ask(server, "GET", path)
    assert code == 200
    assert page.startswith(b"<!DOCTYPE html>")
    headers = server.admin_headers  # type: ignore[attr-defined]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert ask(server, "GET", "/elsewhere")[0] == 404


def test_the_numbers_are_those_of_the_metrics(server: InProcessServer) -> None:
    before = status(server)
    with Client(server.address) as client:
        client.translate(distinct_texts(3), "en", "de")
    # The last turn is counted shortly after its answers were sent.
    eventually(lambda: status(server)["target_tokens_total"] > before["target_tokens_total"])
    after = status(server)
    assert after["calls"]["OK"] - before["calls"].get("OK", 0) == 1
    assert after["slots_max"] == server.metric("dragoman_slots_max", model="tiny")
    assert after["histograms"]["request_seconds"]["counts"][-1] == sum(after["calls"].values())
    assert after["phase"] == "serving"
    assert after["uptime_seconds"] > before["uptime_seconds"]
    (model,) = after["models"]
    assert (model["name"], model["version"], model["pairs"]) == ("tiny", "1", [["en", "de"]])


@pytest.mark.parametrize(
    ("document", "part"),
    [
        ({**HELLO, "texts": ["a"] * 1025}, "allowed: 1024"),
        ({**HELLO, "colour": "blue"}, "colour"),
        ({**HELLO, "texts": "Hello"}, "texts is 'Hello'; allowed: a list"),
        ("Hello", "not a TranslateRequest in JSON"),
    ],
)
def test_what_is_wrong_is_said_and_kept(server: InProcessServer, document: Any, part: str) -> None:
    code, answer = ask(server, "POST", "/api/translate", document, {**JSON, "X-Request-Id": "mine"})
    assert (code, answer["error"]["code"]) == (400, "INVALID_ARGUMENT")
    assert part in answer["error"]["message"]
    newest = status(server)["errors"][0]
    assert (newest["request_id"], newest["method"]) == ("mine", "admin/translate")
    assert newest["code"] == "INVALID_ARGUMENT"


def test_errors_of_grpc_calls_are_listed_without_their_words(server: InProcessServer) -> None:
    with Client(server.address) as client, pytest.raises(ClientError, match="very private"):
        client.translate(["Hello"], "en", "de", model="very private")
    method = "dragoman.v1.TranslationService/Translate"
    eventually(lambda: status(server)["errors"][0]["method"] == method)  # recorded after the caller has its answer
    newest = status(server)["errors"][0]
    assert newest["code"] == "NOT_FOUND"
    assert newest["message"] == "model '…' is not served here; served: tiny."


def test_no_body_is_so_large_that_reading_it_as_json_holds_the_server(server: InProcessServer) -> None:
    assert ask(server, "POST", "/api/translate", {**HELLO, "texts": [""] * 30_000})[0] == 400
    assert ask(server, "POST", "/api/translate", {**HELLO, "texts": [""] * 40_000})[0] == 413


@pytest.mark.parametrize("path", ["/api/translate", "/api/reload", "/api/models/tiny/load", "/api/models/tiny/unload"])
def test_other_web_pages_change_nothing(server: InProcessServer, path: str) -> None:
    own = f"127.0.0.1:{server.server.admin_port}"
    before = server.metric("dragoman_requests_total", method=f"admin/{path.rpartition('/')[2]}", code="OK")
    for headers in ({"Content-Type": "text/plain"}, {**JSON, "Origin": "null"}, {**JSON, "Host": "evil.example"}):
        code, answer = ask(server, "POST", path, HELLO, headers)
        assert (code, answer["error"]["code"]) == (403, "PERMISSION_DENIED"), headers
    assert server.metric("dragoman_requests_total", method=f"admin/{path.rpartition('/')[2]}", code="OK") == before
    own_page = {**JSON, "Host": own, "Origin": f"http://{own}"}
    assert ask(server, "POST", path, HELLO, own_page)[0] != 403  # the page's own origin may send the same request


def test_a_rebound_name_reads_nothing(server: InProcessServer) -> None:
    for path in ("/", "/status", "/status.json", "/api/models"):
        assert ask(server, "GET", path, headers={"Host": "evil.example"})[0] == 403


def test_a_get_changes_nothing(server: InProcessServer) -> None:
    for path in ("/api/translate", "/api/reload", "/api/models/tiny/unload"):
        assert ask(server, "GET", path)[0] == 404


def test_models_are_loaded_and_unloaded_with_explicit_control(serve: Serve) -> None:
    server = serve(model_control="explicit")
    assert status(server)["is_explicit"]
    assert status(server)["models"] == []
    assert ask(server, "GET", "/api/models")[1]["models"][0]["state"] == "unavailable"
    assert ask(server, "POST", "/api/models/tiny/load", {}) == (200, {})
    assert [model["name"] for model in status(server)["models"]] == ["tiny"]
    assert ask(server, "POST", "/api/translate", HELLO)[0] == 200
    assert ask(server, "POST", "/api/models/tiny/unload", {}) == (200, {})
    assert status(server)["models"] == []
    code, answer = ask(server, "POST", "/api/models/no%20body/load", {})
    assert (code, answer["error"]["code"]) == (404, "NOT_FOUND")
    assert "'no body'" in answer["error"]["message"]


def test_without_explicit_control_they_are_not(server: InProcessServer) -> None:
    for action in ("load", "unload"):
        code, answer = ask(server, "POST", f"/api/models/tiny/{action}", {})
        assert (code, answer["error"]["code"]) == (400, "FAILED_PRECONDITION")
    assert ask(server, "POST", "/api/reload", {}) == (200, {"outcome": "unchanged"})


def test_a_server_that_loads_tells_that_and_takes_no_change(serve: Serve) -> None:
    server = serve(load=False)
    assert status(server)["phase"] == "loading"
    assert ask(server, "POST", "/api/reload", {})[0] == 503


def test_a_fault_of_ours_is_in_the_log_and_not_in_the_answer(
    server: InProcessServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("Hello and other private words")

    monkeypatch.setattr("service.faces.admin.calls.request_from_pb", broken)
    caplog.set_level(logging.ERROR)
    code, answer = ask(server, "POST", "/api/translate", HELLO)
    assert (code, answer["error"]["code"]) == (500, "INTERNAL")
    assert "private" not in json.dumps([answer, status(server)["errors"]])
    assert "private" in caplog.text


def test_there_may_be_no_listener(tiny_models: Path, serve: Serve) -> None:
    server = serve(admin_port=-1)
    assert server.server.admin_port == -1
    assert server.get("/readyz")[0] == 200


def test_operators_need_no_key_and_one_that_is_sent_counts(serve: Serve, tmp_path: Path) -> None:
    server = serve(api_keys=write_keys(tmp_path, Quotas(requests_per_minute=1), ci=ALICE))
    with_key = {**JSON, "X-API-Key": ALICE}
    assert ask(server, "POST", "/api/translate", HELLO)[0] == 200
    assert ask(server, "POST", "/api/translate", HELLO, with_key)[0] == 200
    assert server.metric("dragoman_key_requests_total", key="ci") == 1
    code, answer = ask(server, "POST", "/api/translate", HELLO, with_key)
    assert (code, answer["error"]["code"]) == (429, "RESOURCE_EXHAUSTED")
    assert int(server.admin_headers["retry-after"]) >= 1  # type: ignore[attr-defined]
    code, answer = ask(server, "POST", "/api/translate", HELLO, {**JSON, "X-API-Key": "unknown"})
    assert (code, answer["error"]["code"]) == (401, "UNAUTHENTICATED")
    assert ask(server, "POST", "/api/translate", HELLO)[0] == 200
