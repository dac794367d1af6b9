"""The runner of fused graphs, on sessions that note what they are given."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.bundle import fused_io
from service.bundle.manifest_parts import ModelShape
from service.engine.batch import Batch
from service.engine.runner import EncodeJob, RunLimits, RunnerSpec, RunTerminated, SearchRun
from service.engine.runtime.fused_runner import FusedGraphs, FusedRunner
from tests.references.bfloat16 import NAN
from tests.unit.engine.recorder import new_sequence

SPEC = RunnerSpec(4, 32, 64, eos_id=2, decoder_start_id=1, bytes_per_slot=1)


class NotingSession:
    """Stands for a `GraphSession`; `compute` changes what is bound."""

    def __init__(self) -> None:
        self.bound: dict[str, Any] = {}
        self.num_bindings = 0
        self.is_terminated = False
        self.compute: Callable[[dict[str, Any]], None] = lambda bound: None

    def bind(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
        self.num_bindings += 1
        return {name: getattr(memory, "owner", memory) for name, memory in {**inputs, **outputs}.items()}

    def run(self, binding: dict[str, Any]) -> None:
        self.bound = binding
        self.compute(binding)

    def terminate(self) -> None:
        self.is_terminated = True

    def reset(self) -> None:
        self.is_terminated = False


def graphs(encoder: NotingSession, decoder: NotingSession, **changes: int) -> FusedGraphs:
    given = {"records_attention": False, "attention_reads": False} | changes
    return FusedGraphs(encoder, decoder, model=ModelShape(2, 3, 16, 90), spec=SPEC, **given)  # type: ignore[arg-type]


class Setup:
    def __init__(self, **changes: int) -> None:
        self.encoder, self.decoder = NotingSession(), NotingSession()
        self.runner = FusedRunner(graphs(self.encoder, self.decoder, **changes), SPEC)
        self.runner.reset()
        self.batch = Batch(SPEC.max_slots, SPEC.kv_capacity)
        self.runner.attach(self.batch.state)


def test_sources_go_to_their_slots_and_raise_the_guards_of_those_that_ask_for_one() -> None:
    here, gone = Setup(), new_sequence((4, 2))
    sequences = [new_sequence((5, 6, 2), max_repeats=2), new_sequence((7, 2), beam_size=2)]
    for sequence in (gone, *sequences):
        here.batch.join(sequence, 1)
    here.batch.leave(gone)

    def compute(bound: dict[str, Any]) -> None:
        bound["is_finite"][:] = [1, 0]
        bound["most_repeats"][:] = [3, 4]

    here.encoder.compute = compute
    jobs = [EncodeJob(sequence.source_ids, sequence.slots) for sequence in sequences]
    assert here.runner.encode(jobs) == [True, False]
    bound = here.encoder.bound
    assert set(bound) == {*fused_io.ENCODE_INPUTS, *fused_io.ENCODE_OUTPUTS}
    assert bound["token_ids"][:5].tolist() == [5, 6, 2, 7, 2]
    assert bound["ends"].tolist() == [3, 5]
    assert (
        bound["slots"].tolist() == here.batch.state.rows["source_slot"][[each.slots[0] for each in sequences]].tolist()
    )
    assert bound["cross_cache"].shape == (4, 2, 4, 3, 2, 256)
    assert here.batch.max_repeats[sequences[0].slots].tolist() == [3]
    assert (here.batch.max_repeats[sequences[1].slots] > 1000).all(), "no guard was asked for"
    assert here.runner.encode(jobs) == [True, False]
    assert here.encoder.num_bindings == 1


def test_runs_are_on_one_binding_of_the_rows_themselves() -> None:
    here = Setup()
    here.batch.join(new_sequence(), 1)

    def compute(bound: dict[str, Any]) -> None:
        control = bound["control"].view(fused_io.CONTROL)
        assert control[["num_rows", "max_steps", "returns_after", "eos_id", "decoder_start_id"]][0].tolist() == (
            1, 100, 3, 2, 1,
        )  # fmt: skip
        control["num_steps"], control["num_row_steps"], control["num_generated"], control["num_ended"] = 5, 7, 4, 1
        bound["rows"].view(fused_io.ROW)["length"][0] = 5

    here.decoder.compute = compute
    for _ in range(2):
        assert here.runner.search(1, RunLimits(100, 3)) == SearchRun(5, 7, 4, 1)
    assert here.decoder.num_bindings == 1
    assert here.batch.lengths[0] == 5
    shapes = {name: here.decoder.bound[name].shape for name in fused_io.DECODE_INPUTS}
    assert shapes == {
        "control": (16,), "rows": (4, 208), "output_ids": (4, 32), "history": (12, 32), "hypotheses": (8, 16),
        "hypothesis_ids": (8, 32), "self_cache": (4, 2, 2, 3, 2, 256), "cross_cache": (4, 2, 4, 3, 2, 256),
        "attention": (0, 0, 0),
    }  # fmt: skip
    for name in ("self_cache", "cross_cache"):
        assert here.decoder.bound[name].ctypes.data % 64 == 0


@pytest.mark.parametrize(("reads", "places"), [(False, [0, 1, 2]), (True, [1, 2, 2])])
def test_attention_is_that_of_the_steps_that_predict_or_read_the_tokens(reads: bool, places: list[int]) -> None:
    here = Setup(records_attention=True, attention_reads=reads)
    here.runner.search(1, RunLimits(1))
    memory = here.decoder.bound["attention"]
    assert memory.shape == (4, SPEC.kv_capacity, SPEC.max_source_tokens)
    for slot in (1, 3):
        memory[slot].reshape(-1)[: 3 * 2] = 10 * slot + np.arange(6)  # three steps, two tokens of the source
    slots, steps = [3, 1, 3], np.array([[30, 31], [12, 13], [34, 35]])
    found = here.runner.attention(slots, 2)
    assert found is not None
    assert found.tolist() == steps[places].tolist()
    assert Setup().runner.attention(slots, 2) is None


def test_rows_of_a_sequence_that_failed_are_zeroed_where_their_slots_are() -> None:
    here, gone, failed = Setup(), new_sequence((4, 2)), new_sequence((5, 2))
    for sequence in (gone, failed):
        here.batch.join(sequence, 1)
    here.batch.leave(gone)
    here.runner.search(1, RunLimits(1))
    caches = [here.decoder.bound[name] for name in ("self_cache", "cross_cache")]
    for cache in caches:
        cache[:] = NAN
    here.runner.clear(failed.slots)
    for cache in caches:
        assert [bool((slot == NAN).any()) for slot in cache] == [True, False, True, True]


def test_an_interrupt_stays_until_it_is_cleared_and_termination_until_a_reset() -> None:
    here = Setup()
    here.batch.join(new_sequence(), 1)
    seen: list[int] = []
    here.decoder.compute = lambda bound: seen.append(int(bound["control"].view(fused_io.CONTROL)["interrupt"][0]))
    here.runner.control.interrupt()
    here.runner.search(1, RunLimits(1))
    here.runner.control.interrupt_for_newcomers()
    here.runner.search(1, RunLimits(1))
    here.runner.control.clear_interrupt()
    here.runner.search(1, RunLimits(1))
    here.runner.control.interrupt_for_newcomers()
    here.runner.search(1, RunLimits(1))
    assert seen == [1, 1, 0, fused_io.INTERRUPT_FOR_NEWCOMERS], "newcomers can wait"
    here.decoder.compute = lambda bound: here.runner.terminate()
    with pytest.raises(RunTerminated):
        here.runner.search(1, RunLimits(1))
    assert here.decoder.is_terminated
    with pytest.raises(RunTerminated):
        here.runner.encode([EncodeJob((5, 2), [0])])
    here.runner.reset()
    here.decoder.compute = lambda bound: None
    assert here.runner.search(1, RunLimits(1)) == SearchRun(0, 0, 0, 0)
    assert not here.decoder.is_terminated


def test_slots_take_memory_only_as_far_as_their_rows_are_long() -> None:
    decoder = NotingSession()
    spec = dataclasses.replace(SPEC, max_slots=16, kv_capacity=128, max_source_tokens=128)
    made = dataclasses.replace(graphs(NotingSession(), decoder), model=ModelShape(4, 8, 64, 90), spec=spec)
    runner = FusedRunner(made, spec)
    runner.attach(Batch(16, spec.kv_capacity).state)
    before = _resident_bytes()
    runner.search(1, RunLimits(1))
    for name in ("self_cache", "cross_cache"):
        assert not decoder.bound[name][:, :, 0].any()
        decoder.bound[name][:, :, 0] = 1.0
    assert _resident_bytes() - before < 16 * made.shape.bytes_per_slot / 4, "more than one block of each eight"


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
