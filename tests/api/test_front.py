"""The front of several workers: one server for scrapers, probes and operators, whatever happens to its workers."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.calls.keys import Quotas
from service.config.server_config import ServerConfig
from service.faces.front import metrics as front_metrics
from tests.api import operators
from tests.api.operators import FOREIGN, HELLO, JSON
from tests.fronts import Front, front
from tests.key_files import ALICE, write_keys
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, InProcessServer, LoopThread, Serve, distinct_texts, eventually

METHOD = "dragoman.v1.TranslationService/Translate"
CONFIG = ServerConfig(metrics_port=0, admin_port=0)


@pytest.fixture
def two(loop_thread: LoopThread, serve: Serve) -> Iterator[tuple[Front, list[InProcessServer]]]:
    with front(loop_thread, 2, CONFIG) as running:
        servers = [serve(triton_metrics=True), serve(triton_metrics=True)]
        for number, server in enumerate(servers):
            running.appears(number, server)
        yield running, servers


def ask(running: Front, *asked: Any, **more: Any) -> tuple[int, Any]:
    code, answer, running.admin_headers = operators.ask(running.admin_port, *asked, **more)  # type: ignore[attr-defined]
    return code, answer


def status(running: Front) -> Any:
    code, document = ask(running, "GET", "/status.json")
    assert code == 200, document
    return document


def translate(server: InProcessServer, num_calls: int) -> None:
    with server.client() as client:
        for text in distinct_texts(num_calls):
            client.translate([text], "en", "de")


def values(running: Front) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(running.get("/metrics")[2])
        for sample in family.samples
    }


def value(running: Front, name: str, **labels: str) -> float:
    return values(running).get((name, frozenset(labels.items())), 0.0)


def test_the_metrics_are_those_of_both(two: tuple[Front, list[InProcessServer]]) -> None:
    running, servers = two
    translate(servers[0], 3)
    translate(servers[1], 4)
    eventually(lambda: value(running, "dragoman_requests_total", method=METHOD, code="OK") == 7)
    found = values(running)
    both = [server.metrics() for server in servers]
    names = [{name for name, _ in each if name.startswith("dragoman_")} for each in (found, *both)]
    assert names[0] == names[1] | names[2] | {
        "dragoman_workers",
        "dragoman_worker_restarts_total",
        "dragoman_worker_restarts_created",
    }
    for name in ("dragoman_target_tokens_total", "dragoman_slots_max", "dragoman_decode_step_seconds_count"):
        key = name, frozenset({("model", "tiny")})
        assert found[key] == sum(each[key] for each in both) > 0
    key = "nv_inference_count", frozenset({("model", "tiny"), ("version", "1")})
    assert found[key] == 7
    assert value(running, "dragoman_ready") == 1
    assert value(running, "dragoman_workers", state="ready") == 2
    content_type = running.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")[1]
    assert content_type.startswith("application/openmetrics-text")


def test_no_count_falls_when_a_worker_restarts(two: tuple[Front, list[InProcessServer]], serve: Serve) -> None:
    running, servers = two
    translate(servers[0], 2)
    translate(servers[1], 3)
    eventually(lambda: value(running, "dragoman_requests_total", method=METHOD, code="OK") == 5)
    slots = value(running, "dragoman_slots_max", model="tiny")
    running.disappears(0)
    found = values(running)
    assert found["dragoman_requests_total", frozenset({("method", METHOD), ("code", "OK")})] == 5
    assert found["dragoman_workers", frozenset({("state", "silent")})] == 1
    assert 0 < found["dragoman_slots_max", frozenset({("model", "tiny")})] < slots
    assert status(running)["calls"] == {"OK": 5}
    new = serve()
    running.appears(0, new)
    assert value(running, "dragoman_requests_total", method=METHOD, code="OK") == 5
    translate(new, 1)
    eventually(lambda: value(running, "dragoman_requests_total", method=METHOD, code="OK") == 6)
    assert status(running)["histograms"]["request_seconds"]["counts"][-1] == 6


def test_it_is_ready_while_any_worker_is(two: tuple[Front, list[InProcessServer]], serve: Serve) -> None:
    running, _ = two
    assert running.get("/readyz") == (200, "text/plain; charset=utf-8", "ready\nworker-0: serving\nworker-1: serving\n")
    running.disappears(0)
    assert running.get("/readyz")[::2] == (200, "ready\nworker-0: no answer\nworker-1: serving\n")
    running.appears(0, serve(load=False))
    assert running.get("/readyz")[::2] == (200, "ready\nworker-0: loading\nworker-1: serving\n")
    assert value(running, "dragoman_workers", state="not_ready") == 1
    assert value(running, "dragoman_ready") == 1
    running.disappears(1)
    assert running.get("/readyz")[::2] == (503, "not ready\nworker-0: loading\nworker-1: no answer\n")
    assert value(running, "dragoman_ready") == 0
    assert running.get("/livez")[::2] == (200, "alive\nworker-0: loading\nworker-1: no answer\n")
    assert running.get("/elsewhere")[0] == 404


def test_a_worker_that_hangs_is_left_out_in_time(
    two: tuple[Front, list[InProcessServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    running, servers = two
    monkeypatch.setattr(front_metrics, "READ_SECONDS", patient(0.3))
    released = threading.Event()
    engine = servers[0].server.models[0].engine
    snapshot = engine.snapshot

    def hang() -> Any:
        assert threading.current_thread().name == "event loop" or released.wait(TIMEOUT_SECONDS)
        return snapshot()

    monkeypatch.setattr(engine, "snapshot", hang)
    try:
        assert value(running, "dragoman_workers", state="silent") == 1
        assert value(running, "dragoman_workers", state="ready") == 1
    finally:
        released.set()


def test_the_status_is_that_of_both(two: tuple[Front, list[InProcessServer]]) -> None:
    running, servers = two
    translate(servers[0], 2)
    translate(servers[1], 1)
    for number in range(2):  # each goes to another worker
        headers = {**JSON, "X-Request-Id": f"call-{number}"}
        assert ask(running, "POST", "/api/translate", {**HELLO, "texts": []}, headers)[0] == 400
    eventually(lambda: status(running)["calls"].get("OK") == 3)
    now = status(running)
    assert now["phase"] == "serving"
    assert now["calls"] == {"OK": 3, "INVALID_ARGUMENT": 2}
    (model,) = now["models"]
    assert model["slots_max"] == now["slots_max"] == sum(s.metric("dragoman_slots_max", model="tiny") for s in servers)
    assert "workers" not in model
    assert {(each["worker"], each["request_id"]) for each in now["errors"]} == {(0, "call-0"), (1, "call-1")}
    assert [(each["number"], each["phase"], each["calls"]) for each in now["workers"]] == [
        (0, "serving", 3),
        (1, "serving", 2),
    ]
    assert all(each["pid"] > 0 and each["uptime_seconds"] > 0 for each in now["workers"])
    running.disappears(1)
    assert status(running)["workers"][1] == {"number": 1, "phase": "silent"}


def test_a_translation_is_made_by_a_worker_that_is_ready(
    two: tuple[Front, list[InProcessServer]], serve: Serve
) -> None:
    running, _ = two
    running.appears(0, serve(load=False))
    for _ in range(3):
        code, answer = ask(running, "POST", "/api/translate", HELLO, {**JSON, "X-Request-Id": "mine"})
        assert (code, answer["model"]) == (200, "tiny")
        assert running.admin_headers["server-timing"].startswith("total;dur=")  # type: ignore[attr-defined]
        assert running.admin_headers["cache-control"] == "no-store"  # type: ignore[attr-defined]
    running.disappears(1)
    code, answer = ask(running, "POST", "/api/translate", HELLO)
    assert (code, answer["error"]["code"]) == (503, "UNAVAILABLE")
    running.disappears(0)
    code, answer = ask(running, "POST", "/api/translate", HELLO)
    assert (code, answer["error"]["code"]) == (503, "UNAVAILABLE")
    assert "no worker is ready" in answer["error"]["message"]


def test_keys_and_their_quotas_arrive_at_the_workers(loop_thread: LoopThread, serve: Serve, tmp_path: Path) -> None:
    keys = write_keys(tmp_path, Quotas(requests_per_minute=1), ci=ALICE)
    with front(loop_thread, 1, CONFIG) as running:
        running.appears(0, serve(api_keys=keys))
        with_key = {**JSON, "X-API-Key": ALICE}
        assert ask(running, "POST", "/api/translate", HELLO, with_key)[0] == 200
        code, answer = ask(running, "POST", "/api/translate", HELLO, with_key)
        assert (code, answer["error"]["code"]) == (429, "RESOURCE_EXHAUSTED")
        assert int(running.admin_headers["retry-after"]) >= 1  # type: ignore[attr-defined]
        assert ask(running, "POST", "/api/translate", HELLO, {**JSON, "X-API-Key": "unknown"})[0] == 401


def test_changes_are_made_in_all_workers(loop_thread: LoopThread, serve: Serve) -> None:
    with front(loop_thread, 2, replace(CONFIG, model_control="explicit")) as running:
        servers = [serve(model_control="explicit"), serve(model_control="explicit")]
        for number, server in enumerate(servers):
            running.appears(number, server)
        assert status(running)["is_explicit"]
        assert ask(running, "POST", "/api/models/tiny/load", {}) == (200, {})
        assert [len(server.server.models) for server in servers] == [1, 1]
        assert ask(running, "POST", "/api/reload", {}) == (200, {"outcome": "unchanged"})
        code, answer = ask(running, "POST", "/api/models/no%20body/load", {})
        assert (code, answer["error"]["code"]) == (404, "NOT_FOUND")
        message = answer["error"]["message"]
        assert message.startswith("worker-0: ")
        assert "'no body'" in message
        assert "The change also failed in worker-1; it was made in no worker." in message
        running.disappears(0)
        code, answer = ask(running, "POST", "/api/models/tiny/unload", {})
        assert (code, answer["error"]["code"]) == (503, "UNAVAILABLE")
        assert answer["error"]["message"] == "worker-0: it is not running. The change was made in worker-1."
        running.appears(0, servers[0])
        (model,) = status(running)["models"]
        assert model["workers"] == [0]
        states = ask(running, "GET", "/api/models")[1]["models"]
        assert [(each["name"], each["state"], each["workers"]) for each in states] == [
            ("tiny", "ready", [0]),
            ("tiny", "unavailable", [1]),
        ]


@pytest.mark.parametrize("path", ["/api/translate", "/api/reload", "/api/models/tiny/load", "/api/models/tiny/unload"])
def test_other_web_pages_reach_no_worker(loop_thread: LoopThread, path: str) -> None:
    with front(loop_thread, 1, CONFIG) as running:
        for headers in FOREIGN:
            code, answer = ask(running, "POST", path, HELLO, headers)
            assert (code, answer["error"]["code"]) == (403, "PERMISSION_DENIED")
        assert ask(running, "GET", "/status.json", headers={"Host": "evil.example"})[0] == 403
        own = f"127.0.0.1:{running.admin_port}"
        assert ask(running, "POST", path, HELLO, {**JSON, "Host": own, "Origin": f"http://{own}"})[0] == 503
        assert ask(running, "GET", path)[0] == 404


def test_a_front_without_workers_answers(loop_thread: LoopThread) -> None:
    with front(loop_thread, 2, CONFIG) as running:
        code, page = ask(running, "GET", "/")
        assert (code, page[:15]) == (200, b"<!DOCTYPE html>")
        now = status(running)
        assert (now["phase"], now["models"], now["calls"]) == ("silent", [], {})
        assert ask(running, "GET", "/api/models")[0] == 503
        assert running.get("/readyz")[0] == 503
        assert running.get("/livez")[0] == 200
        found = values(running)
        assert found["dragoman_workers", frozenset({("state", "silent")})] == 2
        assert found["dragoman_ready", frozenset()] == 0
        assert ask(running, "POST", "/api/translate", {**HELLO, "texts": ["a" * 200_000]})[0] == 413


def test_there_may_be_no_admin_port(loop_thread: LoopThread) -> None:
    with front(loop_thread, 1, replace(CONFIG, admin_port=-1)) as running:
        assert running.admin_port == -1
        assert running.get("/livez")[0] == 200
