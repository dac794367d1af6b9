"""Runs that do not end, engines that cannot be restarted, and a server's life while an engine is being restarted."""

import resource
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service.bundle import fused_io, graph_io
from service.engine.runtime.fused_runner import FusedRunner
from service.engine.runtime.session import Binding, GraphSession, SessionConfig
from service.faces.http import monitoring
from service.models.reload_plan import ReloadOutcome
from service.process.lifecycle import Phase
from tests.faults.faulty_server import FAULT_FILE
from tests.faults.planted import BOUND_SECONDS, Run, ask, plant
from tests.servers import InProcessServer, LoopThread, Serve, ServerProcess, distinct_texts, eventually
from tests.tiny_bundle import put_bundle, write_tiny_bundle

OK, UNAVAILABLE = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE
NUM_LAYERS = 2


def save_endless(step: Path, endless: Path) -> None:
    """Save a decoder step that loops for days before it returns its result."""
    model = onnx.load(step)
    graph = model.graph
    (last,) = (node for node in graph.node if graph_io.NEXT_IDS in node.output)
    last.output[list(last.output).index(graph_io.NEXT_IDS)] = "ids"
    for node in graph.node:
        node.input[:] = ["ids" if name == graph_io.NEXT_IDS else name for name in node.input]
    value = [helper.make_tensor_value_info(name, TensorProto.INT64, []) for name in ("number", "sum", "next_sum")]
    conditions = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("go_on", "goes_on")]
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go_on"], ["goes_on"]),
            helper.make_node("Mul", ["sum", "number"], ["next_sum"]),
        ],
        "body",
        [value[0], conditions[0], value[1]],
        [conditions[1], value[2]],
    )
    graph.initializer.extend(
        [
            numpy_helper.from_array(np.array(10**15), "turns"),
            numpy_helper.from_array(np.array(True), "always"),
            numpy_helper.from_array(np.array(0), "nothing"),
        ]
    )
    graph.node.append(helper.make_node("Loop", ["turns", "always", "nothing"], ["zero"], body=body))
    graph.node.append(helper.make_node("Add", ["ids", "zero"], [graph_io.NEXT_IDS]))
    onnx.save(model, endless)


def test_a_run_that_does_not_end_is_ended_and_the_engine_comes_back(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, plain_tiny_models: Path, tmp_path: Path
) -> None:
    """With a real graph, which ONNX Runtime terminates."""
    server = serve(stuck_turn_seconds=2.0, models=plain_tiny_models)
    save_endless(plain_tiny_models / "tiny" / "1" / "decoder_step.onnx", tmp_path / "endless.onnx")
    names = graph_io.step_inputs(NUM_LAYERS), graph_io.step_outputs(NUM_LAYERS), graph_io.SCORE_OUTPUTS
    endless = GraphSession(tmp_path / "endless.onnx", SessionConfig(intra_op_threads=1), *names)
    terminate, times = GraphSession.terminate, [1]

    def run(work: Run, binding: Binding) -> None:
        if times[0]:
            times[0] -= 1
            endless.run(endless.bind(binding.inputs, binding.outputs))
        work(binding)

    def terminate_both(session: GraphSession) -> None:
        terminate(session)
        terminate(endless)

    plant(monkeypatch, "decoder_step", run)
    monkeypatch.setattr(GraphSession, "terminate", terminate_both)
    _expect_that_it_comes_back(server)


def test_a_run_of_fused_graphs_that_does_not_end_is_ended(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at the flag that interrupts it, which stands here for a run of very many steps."""
    server = serve(stuck_turn_seconds=2.0)
    runner = server.server.models[0].engine.turns.workers[0].runner
    if not isinstance(runner, FusedRunner):
        pytest.skip("this needs --fused")
    terminate, is_terminated, times = runner.terminate, threading.Event(), [1]

    def run(work: Run, binding: Binding) -> None:
        control: Any = binding.inputs["control"].owner
        if times[0]:
            times[0] -= 1
            is_terminated.wait(BOUND_SECONDS)
            assert control.view(fused_io.CONTROL)["interrupt"]
        work(binding)

    def noted() -> None:
        terminate()
        is_terminated.set()

    plant(monkeypatch, "decoder_step", run)
    monkeypatch.setattr(runner, "terminate", noted)
    _expect_that_it_comes_back(server)


def _expect_that_it_comes_back(server: InProcessServer) -> float:
    """Check that the callers are told, and the engine restarted; return how long the callers waited."""
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        answers = [call.result(BOUND_SECONDS) for call in [pool.submit(ask, server.address) for _ in range(4)]]
    seconds = time.monotonic() - began
    assert {code for code, _ in answers} == {UNAVAILABLE}
    assert any("took more than 2 s and was ended" in details for _, details in answers)
    assert 1.9 < seconds < 10.0
    eventually(lambda: server.server.phase is Phase.SERVING)
    assert ask(server.address)[0] is OK
    assert server.metric("dragoman_engine_restarts_total", model="tiny") == 1
    assert not server.server.has_failed
    return seconds


@pytest.fixture
def fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that selects the fault of `faulty` servers."""
    monkeypatch.setenv(FAULT_FILE, str(tmp_path / "fault"))
    return tmp_path / "fault"


@contextmanager
def faulty(models: Path) -> Iterator[ServerProcess]:
    flags = ("--stuck-turn-seconds", "3", "--max-slots", "8")
    with ServerProcess(models, *flags, program="tests.faults.faulty_server") as process:
        assert ask(process.address)[0] is OK
        yield process


@pytest.mark.parametrize("kind", ["hang", "raise"])
def test_an_engine_that_can_not_be_brought_back_ends_the_process_with_70(
    tiny_models: Path, fault: Path, kind: str
) -> None:
    """Runs hang where nothing can end them, or fail forever. No caller hangs."""
    answers = []
    with faulty(tiny_models) as process, ThreadPoolExecutor(9) as pool:
        fault.write_text(kind)
        began = time.monotonic()
        ending = pool.submit(process.wait, 2 * BOUND_SECONDS)  # reads the log meanwhile, otherwise its pipe fills up
        while not ending.done():
            wait([ending], 0.05)  # refusals come at once
            calls = [pool.submit(ask, process.address) for _ in range(8)]
            answers += [call.result(BOUND_SECONDS) for call in calls]
        code, _, err = ending.result()
    seconds = time.monotonic() - began
    assert code == 70
    assert "hangs in native code" in err if kind == "hang" else "11 times in a row" in err
    assert "could not be restarted" in err.splitlines()[-1]
    codes = {code for code, _ in answers}
    # gRPC cancels calls that race with its stop.
    assert codes <= {UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED}
    assert UNAVAILABLE in codes
    assert seconds < 20.0


def test_memory_that_runs_out_fails_a_call_or_ends_the_process(tiny_models: Path, fault: Path) -> None:
    """Address space really runs out under a large call; no caller ever hangs."""
    left = [8, 2, 0]  # MiB
    while left:
        with faulty(tiny_models) as process:
            while left and process.process.poll() is None:
                fault.write_text(f"limit {left.pop(0)}")
                run_out_of_memory(process)


def run_out_of_memory(process: ServerProcess) -> None:
    """Make large calls while there is a limit; the server works again without it, or has ended with an error."""
    big = distinct_texts(60)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(ask, process.address, big) for _ in range(4)]
        answers = [call.result(2 * BOUND_SECONDS) for call in calls]
    assert all(code is not grpc.StatusCode.DEADLINE_EXCEEDED for code, _ in answers), answers
    if process.process.poll() is None:
        limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(process.process.pid, resource.RLIMIT_AS, limit)
        eventually(lambda: process.process.poll() is not None or ask(process.address)[0] is OK)
    if process.process.poll() is not None:
        code, _, err = process.wait(BOUND_SECONDS)
        assert code != 0
        assert err


def die(*_: Any, **__: Any) -> None:
    raise ValueError("a bug")


@pytest.fixture
def down(
    serve: Serve, tiny_versions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[InProcessServer, Path]:
    """Return a server of two models, one with a failed engine whose restart is many seconds away."""
    models = tmp_path / "models"
    models.mkdir()
    write_tiny_bundle(models / "other" / "1", "other")
    put_bundle(models, tiny_versions / "1")
    monkeypatch.setattr("service.models.supervisor.FIRST_DELAY_SECONDS", 25.0)
    server = serve(models=models, max_slots=4)
    (tiny,) = (model for model in server.server.models if model.name == "tiny")
    monkeypatch.setattr(tiny.engine.turns.workers[0], "run", die)
    assert ask(server.address, model="tiny")[0] is UNAVAILABLE
    assert server.server.phase is Phase.RECOVERING
    return server, models


def test_a_stop_does_not_wait_for_a_recovery(down: tuple[InProcessServer, Path]) -> None:
    server, _ = down
    began = time.monotonic()
    server.close()
    assert time.monotonic() - began < 8.0
    assert not server.server.has_failed


def test_other_models_answer_while_one_recovers_and_a_new_version_takes_its_place(
    down: tuple[InProcessServer, Path], tiny_versions: Path
) -> None:
    server, models = down
    assert ask(server.address, model="other")[0] is OK
    assert ask(server.address, model="tiny")[0] is UNAVAILABLE
    assert server.get("/readyz")[0] == 503
    assert server.get("/livez")[0] == 200
    put_bundle(models, tiny_versions / "2")
    assert server.reload() is ReloadOutcome.CHANGED
    assert ask(server.address, model="tiny")[0] is OK
    eventually(lambda: server.server.phase is Phase.SERVING)


def test_slots_of_a_hanging_engine_count_as_free(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a permanent hang: callers get their results before the threads end, and the server gives up."""
    monkeypatch.setattr("service.models.supervisor.ENGINE_STOP_SECONDS", 0.2)
    server = serve(stuck_turn_seconds=1.0)
    engine = server.server.models[0].engine
    released = threading.Event()

    def run(work: Run, binding: Binding) -> None:
        released.wait(BOUND_SECONDS)
        work(binding)

    plant(monkeypatch, "decoder_step", run)
    assert ask(server.address)[0] is UNAVAILABLE
    snapshot = engine.snapshot()
    assert (snapshot.num_waiting, snapshot.num_running, snapshot.slots_used) == (0, 0, 0)
    assert snapshot.turn_seconds > 1.0
    eventually(lambda: server.server.phase is Phase.FAILED)
    assert server.get("/livez") == (503, "text/plain; charset=utf-8", "failed\n")
    assert server.server.has_failed
    assert ask(server.address)[0] is UNAVAILABLE
    released.set()


def test_an_event_loop_that_hangs_is_told_by_the_probes(
    serve: Serve, loop_thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "HUNG_SECONDS", 1.5)
    server = serve()
    assert server.get("/livez")[::2] == (200, "serving\n")
    release = threading.Event()
    loop_thread.loop.call_soon_threadsafe(release.wait, BOUND_SECONDS)
    try:
        eventually(lambda: server.get("/livez")[0] == 503)
        for path in ("/livez", "/readyz"):
            status, _, told = server.get(path)
            assert (status, told.split(":")[0]) == (503, "stuck")
        assert server.metric("dragoman_event_loop_silence_seconds") > 1.5
    finally:
        release.set()
    eventually(lambda: server.get("/livez")[0] == server.get("/readyz")[0] == 200)
    assert ask(server.address)[0] is OK
