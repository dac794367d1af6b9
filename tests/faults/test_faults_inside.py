"""Faults inside the server: only the affected calls fail, health is reported correctly, and the next call works.

Faults are injected at the lowest point, such as `GraphSession.run` of a loaded model; all else is real.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import grpc
import numpy as np
import onnxruntime.capi.onnxruntime_pybind11_state as ort_errors  # type: ignore[import-untyped, unused-ignore]
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service.bundle import fused_io
from service.engine.runtime.fused_runner import FusedRunner
from service.engine.runtime.host_cache import HostCache
from service.engine.runtime.session import Binding, GraphSession
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.models.supervisor import Supervisor
from tests.faults.planted import BOUND_SECONDS, Answer, Run, ask, plant
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts, eventually

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
OK, INTERNAL, UNAVAILABLE = grpc.StatusCode.OK, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE
GRAPHS = ("encoder", "decoder_step")

PLAIN = pb.DecodingOptions()
SCORED = pb.DecodingOptions(return_scores=True)  # otherwise a step returns only the best token


class Site:
    """A server with its callers and a client that watches its health."""

    def __init__(self, server: InProcessServer, stack: ExitStack) -> None:
        self.server = server
        self.health = health_pb2_grpc.HealthStub(stack.enter_context(grpc.insecure_channel(server.address)))
        self.seen: list[int] = []
        watch = self.health.Watch(health_pb2.HealthCheckRequest(service=""))
        watcher = threading.Thread(target=self._watch, args=(watch,), daemon=True)
        watcher.start()
        stack.callback(watcher.join, BOUND_SECONDS)
        stack.callback(watch.cancel)
        eventually(lambda: bool(self.seen))

    def _watch(self, watch: Any) -> None:
        with suppress(grpc.RpcError):  # it is cancelled
            self.seen.extend(response.status for response in watch)

    @property
    def model(self) -> Any:
        return self.server.server.models[0]

    @property
    def engine(self) -> Any:
        return self.model.engine

    @property
    def worker(self) -> Any:
        return self.engine.turns.workers[0]

    def ask(self, texts: Sequence[str] = (), timeout: float = BOUND_SECONDS, **fields: Any) -> Answer:
        return ask(self.server.address, texts, timeout, **fields)

    def check(self) -> int:
        status: int = self.health.Check(health_pb2.HealthCheckRequest(service=""), timeout=BOUND_SECONDS).status
        return status

    def restarts(self) -> float:
        return self.server.metric("dragoman_engine_restarts_total", model="tiny")

    def expect_well(self, restarts: int = 0, timeout_seconds: float = BOUND_SECONDS) -> None:
        """Wait until everything is as before the fault, and the next call works."""
        eventually(lambda: self.check() == SERVING and self.restarts() == restarts, timeout_seconds)
        assert self.server.get("/readyz") == (200, "text/plain; charset=utf-8", "serving\n")
        assert self.server.get("/livez")[0] == 200
        assert self.ask(distinct_texts(3))[0] is OK
        snapshot = self.engine.snapshot()
        assert snapshot.is_alive
        assert (snapshot.num_waiting, snapshot.num_running, snapshot.slots_used) == (0, 0, 0)
        eventually(lambda: self.server.metric("dragoman_inflight_requests") == 1)  # the watch
        assert not self.server.server.translator.num_pending
        eventually(lambda: self.seen == [SERVING, *[NOT_SERVING, SERVING] * restarts])


@pytest.fixture
def site(serve: Serve) -> Iterator[Callable[..., Site]]:
    with ExitStack() as stack:
        yield lambda **settings: Site(serve(**settings), stack)


class Fault:
    """Replaces a function: the next `times` calls that `concerns` selects fail, later ones work as before."""

    def __init__(
        self,
        work: Callable[..., Any],
        error: BaseException,
        times: int = 1,
        concerns: Callable[..., bool] = lambda *_, **__: True,
    ) -> None:
        self.times = times
        self.num_raised = 0
        self._work, self._error, self._concerns = work, error, concerns

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.times and self._concerns(*arguments, **named):
            self.times -= 1
            self.num_raised += 1
            raise type(self._error)(*self._error.args)
        return self._work(*arguments, **named)


def carry_on(work: Run, binding: Binding) -> None:
    work(binding)


@pytest.fixture(autouse=True)
def quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every restart come as soon as the first one: otherwise the delays grow to half a minute."""
    monkeypatch.setattr("service.models.supervisor.GOOD_SECONDS", 0.0)


ALWAYS = 10**9
OUT_OF_MEMORY = ort_errors.RuntimeException(
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Failed to allocate memory for requested buffer of size 8589934592"
)


def test_a_run_that_raises_fails_its_calls_only(site: Callable[..., Site]) -> None:
    here, errors = site(), (RuntimeError("device error"), OUT_OF_MEMORY, MemoryError())
    cases = [*itertools.product(GRAPHS, errors, (1, 3))]
    for graph, error, times in cases:
        fault = Fault(carry_on, error, times)
        with pytest.MonkeyPatch.context() as patch:
            plant(patch, graph, fault)
            answers = [here.ask() for _ in range(times + 1)]
        assert [code for code, _ in answers] == [INTERNAL] * times + [OK]
        assert type(error).__name__ in answers[0][1]
        assert fault.num_raised == times
    here.expect_well()


def test_runs_that_always_raise_restart_the_engine_until_they_work(site: Callable[..., Site]) -> None:
    here = site()
    for restarts, graph in enumerate(GRAPHS, 1):
        with pytest.MonkeyPatch.context() as patch:
            fault = Fault(carry_on, RuntimeError("device lost"), ALWAYS)
            plant(patch, graph, fault)
            answers: list[Answer] = []
            while not answers or answers[-1][0] is INTERNAL:
                answers.append(here.ask())
                assert len(answers) <= 6
            eventually(lambda: here.check() == NOT_SERVING)
            assert here.server.get("/readyz") == (503, "text/plain; charset=utf-8", "recovering\n")
            assert here.server.get("/livez")[0] == 200
            began = time.monotonic()
            code, details = here.ask()
            assert (code, "is being restarted" in details) == (UNAVAILABLE, True)
            assert time.monotonic() - began < 5.0  # immediately, not at its deadline
            raised = fault.num_raised
            # The golden sentences fail, so it is tried but not served.
            eventually(lambda fault=fault, raised=raised: fault.num_raised > raised)  # type: ignore[misc]
            assert here.check() == NOT_SERVING
            fault.times = 0
            here.expect_well(restarts)


def test_watchers_hear_at_once_of_an_engine_that_fails_in_the_drain_delay(site: Callable[..., Site]) -> None:
    delay_seconds = patient(6)
    here = site(drain_delay_seconds=delay_seconds)
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        plant(patch, "encoder", Fault(carry_on, RuntimeError("device lost"), ALWAYS))
        closing = here.server.start_closing()
        eventually(lambda: here.check() == NOT_SERVING)
        assert here.seen == [SERVING]
        answers = [here.ask()[0] for _ in range(6)]
        assert answers[-1] is UNAVAILABLE
        eventually(lambda: here.seen == [SERVING, NOT_SERVING])
        assert time.monotonic() - began < delay_seconds / 2
    closing.result(delay_seconds + patient(30))


def test_what_is_no_number_fails_its_calls_only(site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    here, times = site(), [0]
    is_fused = isinstance(here.worker.runner, FusedRunner)

    def run(work: Run, binding: Binding, graph: str) -> None:
        is_bad, times[0] = times[0] > 0, times[0] - 1
        if is_bad and graph == "decoder_step":  # the real graph then produces NaN
            _spoil(buffer for name, buffer in binding.inputs.items() if name.startswith("cross_"))
        work(binding)
        if is_bad and graph == "encoder":
            _spoil(binding.outputs.values())
        elif is_bad and is_fused:  # in int8, NaN in a cache becomes some level: only the status can say that it was
            here.worker.batch.state.rows["status"] = fused_io.BROKEN
            control: Any = binding.inputs["control"].owner
            control.view(fused_io.CONTROL)["num_ended"] = control.view(fused_io.CONTROL)["num_rows"]

    cases = (("encoder", PLAIN), ("decoder_step", PLAIN), ("decoder_step", SCORED))
    for restarts, (graph, options) in enumerate(cases, 1):
        times[0] = 1
        with monkeypatch.context() as patch:
            plant(patch, graph, partial(run, graph=graph))
            code, details = here.ask(options=options)
            assert (code, "NaN" in details) == (INTERNAL, True)
            assert here.ask(options=options)[0] is OK
            here.expect_well(restarts - 1)
            times[0] = ALWAYS
            answers = [here.ask(options=options)[0] for _ in range(5)]
            assert answers == [INTERNAL] * 5  # the fifth in a row exceeds the limit
            eventually(lambda: here.check() == NOT_SERVING)
            times[0] = 0
            here.expect_well(restarts)


def _spoil(buffers: Any) -> None:
    for buffer in buffers:
        array = buffer.owner
        assert isinstance(array, np.ndarray)
        array[...] = np.nan if array.dtype.kind == "f" else 0  # which says "not finite"


@pytest.mark.plain
def test_slow_runs_keep_deadlines_and_health(site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    here = site()

    def slow(work: Run, binding: Binding) -> None:
        threading.Event().wait(0.1)  # the fault itself
        work(binding)

    plant(monkeypatch, "decoder_step", slow)
    began = time.monotonic()
    assert here.ask(timeout=0.5)[0] is grpc.StatusCode.DEADLINE_EXCEEDED
    seconds = time.monotonic() - began
    assert seconds < 3.0
    assert here.check() == SERVING
    eventually(lambda: here.engine.snapshot().slots_used == 0)
    monkeypatch.undo()
    here.expect_well()


def test_a_tokenizer_that_raises_fails_its_call_only(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site()
    tokenizer, _ = here.model.tokenizer_of(here.model.manifest.languages[0])
    bad = "the poisoned window"
    encode = Fault(tokenizer.encode, RuntimeError("broken piece"), ALWAYS, lambda text: bad in text)
    monkeypatch.setattr(tokenizer, "encode", encode)
    _only_the_bad_call_fails(here, bad)
    monkeypatch.undo()
    ids = tuple(tokenizer.encode(bad))
    poisoned: list[tuple[int, ...]] = []
    finish = here.engine.turns.queue.finish

    def watched(leader: Any, hypotheses: Any) -> None:
        if tuple(leader.source_ids[: len(ids)]) == ids:
            poisoned.append(tuple(hypotheses[0].token_ids))
        finish(leader, hypotheses)

    monkeypatch.setattr(here.engine.turns.queue, "finish", watched)
    decode = Fault(tokenizer.decode, RuntimeError("broken piece"), ALWAYS, lambda ids: ids and tuple(ids) in poisoned)
    monkeypatch.setattr(tokenizer, "decode", decode)
    _only_the_bad_call_fails(here, bad)
    assert encode.num_raised
    assert decode.num_raised
    monkeypatch.undo()
    here.expect_well()


def _only_the_bad_call_fails(here: Site, *bad: str, **fields: Any) -> None:
    with ThreadPoolExecutor(6) as pool:
        good = [pool.submit(here.ask, distinct_texts(2)) for _ in range(5)]
        code, details = pool.submit(here.ask, bad, **fields).result(BOUND_SECONDS)
        assert (code, "see request" in details) == (INTERNAL, True)
        assert [call.result(BOUND_SECONDS)[0] for call in good] == [OK] * 5


@pytest.mark.plain
def test_an_aligner_that_raises_fails_its_call_only(site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    here = site()
    plant(monkeypatch, "alignment", Fault(carry_on, OUT_OF_MEMORY))
    _only_the_bad_call_fails(here, return_alignments=True)
    assert here.ask(return_alignments=True)[0] is OK
    here.expect_well()


def test_a_cache_that_can_not_grow_fails_its_calls_only(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fused graphs have caches of a fixed size: instead, memory is missing for what is bound."""
    here = site()
    is_fused = isinstance(here.worker.runner, FusedRunner)
    places: list[tuple[Any, str]] = [(HostCache, name) for name in ("prepare_step", "store_sources", "encoder_outputs")]
    for place, method in [(GraphSession, "bind")] if is_fused else places:
        if is_fused:
            here.worker.runner.reset()
            here.worker.runner.attach(here.worker.batch.state)
        fault = Fault(getattr(place, method), MemoryError())
        with monkeypatch.context() as patched:
            patched.setattr(place, method, lambda *arguments, fault=fault, **named: fault(*arguments, **named))
            code, details = here.ask()
            assert (code, "MemoryError" in details) == (INTERNAL, True), method
            assert here.ask()[0] is OK
        assert fault.num_raised == 1
    here.expect_well()


THREAD: dict[str, Callable[[Any], tuple[Any, str]]] = {
    "scheduler": lambda site: (site.engine.turns, "_plan"),
    "worker": lambda site: (site.worker, "run"),
    "requests, coming": lambda site: (site.engine.turns.queue, "admit"),
    "requests, starting": lambda site: (site.engine.turns.queue, "start"),
    "requests, going": lambda site: (site.engine.turns.queue, "finish"),
    "books": lambda site: (site.engine.turns.queue, "take_updates"),
    "listener, updates": lambda site: (site.engine.listener, "on_updates"),
    "listener, statistics": lambda site: (site.engine.listener, "on_turn"),
    "search": lambda site: (site.worker, "step"),
}


def test_a_thread_that_dies_is_replaced_and_nobody_hangs(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site(max_slots=2)
    worst, errors = 0.0, itertools.cycle([ValueError("a bug"), MemoryError()])
    for number, (where, error) in enumerate(zip(THREAD, errors, strict=False), 1):
        place, method = THREAD[where](here)
        fault = Fault(getattr(place, method), error)
        with ThreadPoolExecutor(8) as pool, monkeypatch.context() as patched:
            patched.setattr(place, method, fault)
            calls = [pool.submit(here.ask, distinct_texts(3)) for _ in range(8)]
            codes = {call.result(2 * BOUND_SECONDS)[0] for call in calls}
            assert codes <= {OK, UNAVAILABLE}, where
            eventually(lambda number=number: here.restarts() == number)  # type: ignore[misc]
        assert fault.num_raised == 1, where
        began = time.monotonic()
        here.expect_well(restarts=number)
        worst = max(worst, time.monotonic() - began)


def test_each_call_that_a_dead_engine_held_is_answered_once_and_at_once(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = site(max_slots=2)
    released, reached = threading.Event(), threading.Event()

    def die(*_: Any, **__: Any) -> None:
        reached.set()
        assert released.wait(BOUND_SECONDS)
        raise ValueError("a bug")

    monkeypatch.setattr(here.worker, "run", die)
    with ThreadPoolExecutor(12) as pool:
        calls = [pool.submit(here.ask, distinct_texts(4)) for _ in range(12)]
        assert reached.wait(BOUND_SECONDS)
        eventually(lambda: here.server.metric("dragoman_inflight_requests") == 13)  # and the watch
        released.set()
        answers = [call.result(BOUND_SECONDS) for call in calls]
    assert {code for code, _ in answers} <= {UNAVAILABLE}
    assert here.server.metric("dragoman_sentences_total", model="tiny", outcome="failed") <= 48
    here.expect_well(restarts=1)


def test_without_recovery_the_tests_here_fail(site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: what `expect_well` finds."""
    here = site()
    monkeypatch.setattr(Supervisor, "_recover", lambda *_: None)
    monkeypatch.setattr(here.worker, "run", Fault(here.worker.run, ValueError("a bug")))
    assert here.ask()[0] is UNAVAILABLE
    with pytest.raises(AssertionError, match="not within"):
        here.expect_well(restarts=1, timeout_seconds=1.0)
