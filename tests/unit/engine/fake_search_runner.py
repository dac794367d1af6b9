"""A fake runner that chooses the tokens itself: Python's strategies on the fake model, from nothing but the rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.bundle import fused_io
from service.domain.options import DecodingOptions
from service.domain.translation import FinishReason
from service.engine.batch import Batch
from service.engine.repeats import UNGUARDED, most_repeats
from service.engine.runner import ONE_STEP, EncodeJob, Fetch, Rows, RunLimits, RunOutput, SearchRun
from service.engine.search.stepwise import StepwiseSearch, _kind
from service.engine.search_state import SearchState
from service.engine.sequence import DecodedHypothesis
from service.engine.sequence import Sequence as Sequence_
from tests.unit.engine.fake_runner import EOS_ID, START_ID, FakeRunner

_STATUS = {
    FinishReason.STOP: fused_io.STOPPED,
    FinishReason.LENGTH: fused_io.AT_LIMIT,
    FinishReason.RATIO: fused_io.AT_LIMIT,
    FinishReason.REPETITION: fused_io.REPEATING,
}
_REMOVED = 7  # stands for a token that repeats once too often


class FakeSearchRunner(FakeRunner):
    """Implements `SearchRunner`. What it keeps of a sequence is known by its slots, and what it is given must agree.

    It makes up to `steps_per_run` steps, whatever the limits say; 0: as many as they say.
    """

    def __init__(self, *args: Any, steps_per_run: int = 0, **named: Any) -> None:
        super().__init__(*args, **named)
        stepwise = replace(self.spec, max_steps=1)
        self.spec = replace(stepwise, searches=True, max_steps=self.spec.kv_capacity)
        self.steps_per_run = steps_per_run
        self.runs: list[RunLimits] = []
        self.is_interrupted = self.is_awaited = False
        self.before_run: Callable[[], None] | None = None
        self._stepwise = _Stepwise(self, stepwise)
        self._state: SearchState | None = None
        self._source_of: dict[int, tuple[int, ...]] = {}  # by source slot
        self._unclean_slots: set[int] = set()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._batch = Batch(self.spec.max_slots, self.spec.kv_capacity)
        self._search = StepwiseSearch(self._stepwise, self._batch)  # type: ignore[arg-type]
        self._running: dict[int, _Known] = {}  # by source slot

    def attach(self, state: SearchState) -> None:
        assert len(state.rows) == self.spec.max_slots
        self._state = state

    def encode(self, jobs: Sequence[EncodeJob]) -> list[bool]:
        assert self._state is not None
        rows = self._state.rows
        for job in jobs:
            (slot,) = set(rows["source_slot"][job.rows].tolist())
            assert not self._unclean_slots.intersection(rows["slot"][job.rows].tolist()), "a slot was not cleared"
            self._source_of[slot] = tuple(job.source_ids)
            if rows["max_repeats"][job.rows[0]] < UNGUARDED:
                rows["max_repeats"][job.rows] = np.maximum(rows["max_repeats"][job.rows], most_repeats(job.source_ids))
        are_good = super().encode([job._replace(rows=()) for job in jobs])
        for job, is_good in zip(jobs, are_good, strict=True):
            if not is_good:
                self._unclean_slots.update(rows["slot"][job.rows].tolist())
        return are_good

    def search(self, num_rows: int, limits: RunLimits) -> SearchRun:
        self._check_terminated()
        if self.before_run is not None:
            self.before_run()
        assert limits.max_steps >= 1
        self.runs.append(limits)
        self.num_runs += 1
        self._meet(num_rows)
        num_steps = num_row_steps = num_generated = num_ended = 0
        most = self.steps_per_run or limits.max_steps
        while num_steps < most and any(not each.has_ended for each in self._running.values()):
            if self.is_interrupted or (self.is_awaited and num_steps >= max(limits.least_steps, 1)):
                break
            num_steps += 1
            outcome = self._search.run(ONE_STEP)
            num_generated += outcome.num_generated
            num_row_steps += outcome.num_row_steps
            for sequence in outcome.failed:  # all first: moves must not spread NaN
                FakeRunner.clear(self, sequence.slots)
            for sequence, hypotheses in outcome.finished:
                self._end(self._of(sequence), hypotheses)
            for sequence in outcome.failed:
                self._break(self._of(sequence))
            num_ended += sum(each.num_slots for each in (*outcome.failed, *(each for each, _ in outcome.finished)))
            if limits.returns_after and num_ended >= limits.returns_after:
                break
        self._tell()
        self._check_terminated()
        return SearchRun(num_steps, num_row_steps, num_generated, num_ended)

    def interrupt(self) -> None:
        self.is_interrupted = True

    def interrupt_for_newcomers(self) -> None:
        self.is_awaited = True

    def clear_interrupt(self) -> None:
        self.is_interrupted = self.is_awaited = False

    def move(self, source_row: int, target_row: int, length: int) -> None:
        """Slots don't move."""

    def clear(self, rows: Sequence[int]) -> None:
        assert self._state is not None
        self._unclean_slots.difference_update(self._state.rows["slot"][list(rows)].tolist())

    def reset(self) -> None:
        super().reset()
        self.is_interrupted = False
        self._unclean_slots.clear()
        self._begin_anew()

    def terminate(self) -> None:
        super().terminate()
        self.interrupt()

    def _meet(self, num_rows: int) -> None:
        """Forget sequences that have left, and join those that are new; check the others' rows."""
        assert self._state is not None
        rows = self._state.rows[:num_rows]
        leaders = {int(rows["source_slot"][row]): row for row in range(num_rows) if not rows["rank"][row]}
        assert len(leaders) == int((rows["rank"] == 0).sum()), "two sequences share a source"
        assert sum(int(rows["width"][row]) for row in leaders.values()) == num_rows
        assert not rows["status"].any(), "a row has ended and has not left"
        for slot, known in list(self._running.items()):
            if slot not in leaders or not rows["length"][leaders[slot]]:
                if not known.has_ended:
                    self._leave(known)
                del self._running[slot]
        for slot, leader in leaders.items():
            own = rows["beam_rows"][leader, : rows["width"][leader]].tolist()
            assert rows["rank"][own].tolist() == list(range(len(own)))
            slots = rows["slot"][own].tolist()
            if slot not in self._running:
                assert not rows["length"][own].any(), "a running sequence was never seen"
                self._join(slot, own, slots)
            known = self._running[slot]
            assert known.slots == slots, "slots have moved"
            known.rows = own
            for row, inner in zip(own, known.sequence.slots, strict=True):
                length = int(self._batch.lengths[inner])
                assert rows["length"][row] == length
                mine = self._batch.output_ids[inner, : max(length, len(known.sequence.forced_ids))]
                assert self._state.output_ids[row, : len(mine)].tolist() == mine.tolist()

    def _join(self, slot: int, own: list[int], slots: list[int]) -> None:
        assert self._state is not None
        row, source_ids = self._state.rows[own[0]], self._source_of[slot]
        assert row["source_length"] == len(source_ids)
        forced = self._state.output_ids[own[0], : row["forced_length"]].tolist()
        assert len(forced) == row["model_prefix"] + row["caller_prefix"]
        options = DecodingOptions(
            beam_size=int(row["width"]),
            length_penalty=float(row["length_penalty"]),
            num_hypotheses=int(row["width"]),
            max_output_tokens=int(row["limit"] - row["model_prefix"]),
            return_scores=bool(row["flags"] & fused_io.WANTS_SCORE),
            temperature=float(row["temperature"]),
            top_k=int(row["top_k"]),
            top_p=float(row["top_p"]),
            seed=int(row["seed"]),
            stops_early=bool(row["flags"] & fused_io.STOPS_EARLY),
            forces_end=bool(row["flags"] & fused_io.FORCES_END),
            max_repeats=0 if row["max_repeats"] == UNGUARDED else int(row["max_repeats"]),
            repetition_penalty=float(row["repetition_penalty"]),
            no_repeat_ngram_size=int(row["no_repeat_ngram_size"]),
            min_output_tokens=int(row["min_output_tokens"]),
        )
        model_prefix = int(row["model_prefix"])
        sequence = Sequence_(
            source_ids,
            options,
            0.0,
            target_prefix_ids=tuple(forced[:model_prefix]),
            output_prefix_ids=tuple(forced[model_prefix:]),
        )
        for inner in self._batch.join(sequence, START_ID):
            self._sources[inner] = source_ids
            self._inputs[inner] = []
        self._search.join(sequence)
        self._running[slot] = _Known(sequence, own, slots)

    def _leave(self, known: "_Known") -> None:
        FakeRunner.clear(self, known.sequence.slots)
        for move in self._batch.leave(known.sequence):
            FakeRunner.move(self, *move)
        self._search.leave(known.sequence)

    def _of(self, sequence: Sequence_) -> "_Known":
        return next(each for each in self._running.values() if each.sequence is sequence)

    def _end(self, known: "_Known", hypotheses: tuple[DecodedHypothesis, ...]) -> None:
        assert self._state is not None
        self._write(known)
        rows, sequence = self._state.rows, known.sequence
        excess = self._batch.excess(sequence.slots[0]) if sequence.options.max_repeats else 0
        rows["status"][known.rows] = _STATUS[hypotheses[0].finish_reason]
        rows["excess"][known.rows] = excess
        if sequence.num_slots > 1:
            given_up = [each for each in hypotheses if each.finish_reason is FinishReason.REPETITION]
            finished = [each for each in hypotheses if each.finish_reason is not FinishReason.REPETITION]
            rows["num_finished"][known.rows[0]] = len(finished)
            rows["num_given_up"][known.rows[0]] = len(given_up)
            for start, some in ((0, finished), (self.spec.max_slots, given_up)):
                for row, hypothesis in zip(known.rows, some, strict=False):
                    self._keep(start + row, sequence, hypothesis)
        self._leave(known)
        known.has_ended = True

    def _keep(self, place: int, sequence: Sequence_, hypothesis: DecodedHypothesis) -> None:
        assert self._state is not None
        output_ids, excess = [*sequence.target_prefix_ids, *hypothesis.token_ids], 0
        if hypothesis.finish_reason is FinishReason.STOP:
            output_ids.append(EOS_ID)
        if hypothesis.finish_reason is FinishReason.REPETITION:
            output_ids.append(_REMOVED)
            excess = 1
        self._state.hypotheses[place] = (hypothesis.score, len(output_ids), excess, 0)
        self._state.hypothesis_ids[place, : len(output_ids)] = output_ids

    def _break(self, known: "_Known") -> None:
        assert self._state is not None
        self._write(known)
        self._state.rows["status"][known.rows] = fused_io.BROKEN
        self._unclean_slots.update(known.slots)
        self._leave(known)
        known.has_ended = True

    def _tell(self) -> None:
        """Write what has become of the sequences that go on, with what they have finished so far."""
        assert self._state is not None
        for known in self._running.values():
            if known.has_ended:
                continue
            self._write(known)
            strategy = self._search._strategies[_kind(known.sequence.options)]
            hypotheses = getattr(getattr(strategy, "_inner", strategy), "_hypotheses", {}).get(known.sequence)
            if hypotheses is not None:
                best, leader = hypotheses.best(1)[0], known.rows[0]
                self._state.rows["num_finished" if hypotheses.finished else "num_given_up"][leader] = 1
                place = leader if hypotheses.finished else self.spec.max_slots + leader
                self._state.hypotheses[place] = (best.score, len(best.output_ids), best.excess, 0)
                self._state.hypothesis_ids[place, : len(best.output_ids)] = best.output_ids

    def _write(self, known: "_Known") -> None:
        assert self._state is not None
        state, inner = self._state, self._batch.state
        for row, own in zip(known.rows, known.sequence.slots, strict=True):
            for name in ("token_id", "length", "log_prob", "runs"):
                state.rows[name][row] = inner.rows[name][own]
            state.output_ids[row] = inner.output_ids[own]


@dataclass(eq=False)
class _Known:
    sequence: Sequence_  # of the inner batch
    rows: list[int]  # of the engine's batch, by rank
    slots: list[int]
    has_ended: bool = False


@dataclass
class _Stepwise:
    """The fake model for the strategies."""

    runner: FakeSearchRunner
    spec: Any

    def run(self, rows: Rows, fetch: Fetch, max_steps: int) -> RunOutput:
        num_runs = self.runner.num_runs
        try:
            return FakeRunner.run(self.runner, rows, fetch, max_steps)
        finally:
            self.runner.num_runs = num_runs

    def reorder(self, source_rows: Sequence[int], target_rows: Sequence[int], lengths: Sequence[int]) -> None:
        FakeRunner.reorder(self.runner, source_rows, target_rows, lengths)
