"""Several models in one server: which one answers, and models that come and go while calls are answered."""

import gc
import shutil
import threading
import weakref
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service.engine.engine import Engine
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.models.reload_plan import ReloadOutcome
from tests.gate import Gate
from tests.grpc_calls import request_of, stub_of
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts, eventually
from tests.tiny_bundle import GOLDEN_TEXTS, golden_translations, put_bundle, write_tiny_bundle

UNCHANGED, CHANGED, FAILED = ReloadOutcome.UNCHANGED, ReloadOutcome.CHANGED, ReloadOutcome.FAILED


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle that translates among four languages."""
    return write_tiny_bundle(tmp_path_factory.mktemp("many") / "1", "many", seed=9, among="fr it es pt")


def of_pair(source: str, target: str) -> dict[str, str]:
    return {"source_language_code": source, "target_language_code": target}


def ask(server: InProcessServer, source: str = "en", target: str = "de", **fields: Any) -> Any:
    with stub_of(server.address, enable_retries=0) as stub:
        return stub.Translate(request_of(GOLDEN_TEXTS, **of_pair(source, target), **fields), timeout=patient(30))


@pytest.fixture
def start(serve: Serve, tmp_path: Path) -> Any:
    models = tmp_path / "models"
    models.mkdir()

    def run(*bundles: tuple[Path, str], **settings: Any) -> tuple[InProcessServer, Path]:
        for bundle, name in bundles:
            put_bundle(models, bundle, name)
        return serve(models=models, **({"max_slots": 4} | settings)), models

    return run


def test_a_call_finds_its_model_by_pair_by_name_and_by_version(
    start: Any, tiny_versions: Path, many: Path, tmp_path: Path
) -> None:
    french = write_tiny_bundle(tmp_path / "1", "french", "en", "fr", seed=7)
    tiny = [(tiny_versions / version, "tiny") for version in "123"]
    server, _ = start(*tiny, (french, "french"), (many, "many"), max_versions=2)
    with server.client() as client:
        assert [(model.name, model.version) for model in client.models()] == [
            ("french", "1"), ("many", "1"), ("tiny", "3"), ("tiny", "2"),
        ]  # fmt: skip
        assert len(list(client.models()[1].pairs())) == 12

    assert server.metric("dragoman_slots_max", model="tiny") == 2 * 4  # all versions together

    def answer(**asked: Any) -> Any:
        response = ask(server, **asked)
        return response.model, response.model_version, [each.text for each in response.translations]

    assert answer() == ("tiny", "3", golden_translations(tiny_versions / "3"))
    assert answer(model="tiny") == ("tiny", "3", golden_translations(tiny_versions / "3"))
    assert answer(model="tiny", model_version="2") == ("tiny", "2", golden_translations(tiny_versions / "2"))
    assert answer(target="fr") == ("french", "1", golden_translations(french))
    assert answer(source="fr", target="it") == ("many", "1", golden_translations(many))
    directions = [(source, target) for source in ("fr", "it", "es", "pt") for target in ("fr", "it", "es", "pt")]
    answers = {answer(source=source, target=target)[2][0] for source, target in directions if source != target}
    assert len(answers) == 12  # each pair has different prefixes, so different answers


def flip_a_bit(bundle: Path) -> None:
    path = bundle / "encoder.onnx"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_bad_bundle_never_replaces_a_good_one(
    start: Any, tiny_versions: Path, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    server, models = start((tiny_versions / "1", "tiny"))
    expected = golden_translations(tiny_versions / "1")
    bad = shutil.copytree(tiny_versions / "2", tmp_path / "2")
    flip_a_bit(bad)
    put_bundle(models, bad)
    for outcome in (FAILED, UNCHANGED):
        assert server.reload() is outcome
        response = ask(server)
        assert (response.model_version, [each.text for each in response.translations]) == ("1", expected)
    assert server.metric("dragoman_model_load_failures_total", model="tiny") == 1
    assert server.metric("dragoman_reloads_total", outcome="failed") == 1
    assert server.metric("dragoman_ready") == 1
    (line,) = [r.getMessage() for r in caplog.records if r.name == "service.models.fleet"]
    assert str(models / "tiny" / "2") in line
    assert "\n" not in line
    shutil.rmtree(models / "tiny" / "2")
    put_bundle(models, tiny_versions / "2")
    assert server.reload() is CHANGED
    assert [each.text for each in ask(server).translations] == golden_translations(tiny_versions / "2")


def test_a_retired_model_leaves_nothing_behind(start: Any, tiny_versions: Path, many: Path) -> None:
    server, models = start((tiny_versions / "1", "tiny"), (many, "many"))

    def engine_threads() -> int:
        return sum(thread.name.startswith("engine-") for thread in threading.enumerate())

    def is_gone(engine: weakref.ref[Engine]) -> bool:
        gc.collect()  # another thread may still hold a reference to its last work
        return engine() is None

    def series(name: str) -> list[str]:
        return [line for line in server.get("/metrics")[2].splitlines() if f'model="{name}"' in line]

    ask(server)
    ask(server, source="fr", target="it")
    num_threads = engine_threads()
    (old,) = [weakref.ref(model.engine) for model in server.server.models if model.name == "tiny"]
    put_bundle(models, tiny_versions / "2")
    assert server.reload() is CHANGED
    eventually(lambda: is_gone(old))
    assert engine_threads() == num_threads
    ask(server)
    assert server.metric("dragoman_sentences_total", model="tiny", outcome="ok") == 6  # continues across versions
    assert server.metric("dragoman_slots_max", model="tiny") == 4
    assert [line.partition('version="')[2][0] for line in series("tiny") if "model_info" in line] == ["2"]

    (gone,) = [weakref.ref(model.engine) for model in server.server.models if model.name == "many"]
    assert len(series("many")) > 50
    shutil.rmtree(models / "many")
    assert server.reload() is CHANGED
    eventually(lambda: is_gone(gone))
    assert engine_threads() == num_threads - 1
    assert [line for line in series("many") if "load_failures" not in line] == []
    with pytest.raises(grpc.RpcError, match="no model here translates from 'fr' into 'it'; served: en to de"):
        ask(server, source="fr", target="it")


def test_a_failed_newcomer_leaves_no_series_but_its_failures(start: Any, tiny_versions: Path, many: Path) -> None:
    server, models = start((tiny_versions / "1", "tiny"))
    flip_a_bit(put_bundle(models, many, "many"))
    assert server.reload() is FAILED
    lines = [line for line in server.get("/metrics")[2].splitlines() if 'model="many"' in line]
    assert [line for line in lines if "_created" not in line] == [
        'dragoman_model_load_failures_total{model="many"} 1.0'
    ]


def test_a_call_that_runs_on_a_model_that_goes_is_answered(
    start: Any, tiny_versions: Path, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, models = start((tiny_versions / "1", "tiny"), (many, "many"), grace_seconds=25.0)
    gate = Gate(server, monkeypatch, "many")
    with grpc.insecure_channel(server.address) as channel:
        stub = pb_grpc.TranslationServiceStub(channel)
        request = request_of(distinct_texts(25), **of_pair("fr", "it"))
        call = stub.Translate.future(request, timeout=patient(60))
        gate.wait()
        shutil.rmtree(models / "many")
        reloading = server.start_reloading()
        eventually(lambda: [model.name for model in server.server.models] == ["tiny"])
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=patient(30))
        assert health.status == health_pb2.HealthCheckResponse.SERVING
        assert not reloading.done()
        gate.open()
        assert len(call.result(timeout=patient(60)).translations) == 25
        assert reloading.result(patient(30)) is CHANGED
