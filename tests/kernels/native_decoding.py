"""Batches of sequences decoded by the search in C++, step by step on the logits of a random model."""

import math
from collections.abc import Sequence as Several
from pathlib import Path
from random import Random

import numpy as np

from service.bundle.fused_io import AT_LIMIT, BROKEN, REPEATING, RUNNING, STOPPED
from service.engine.runner import RunnerSpec
from service.engine.search.hypotheses import decoded, score
from service.engine.sequence import DecodedHypothesis, Sequence
from tests.kernels.native_search import NativeSearch, State
from tests.kernels.random_model import RandomModel

CAPACITY = 40
EOS_ID = 1
START_ID = 0

Answer = tuple[DecodedHypothesis, ...] | None  # None: the model produced NaN


class Decoding:
    """A batch of sequences whose rows and slots are in a random order."""

    def __init__(self, library: Path, sequences: Several[Sequence], model: RandomModel, spec: RunnerSpec,
                 random: Random) -> None:  # fmt: skip
        self._library, self._model, self._spec = library, model, spec
        self._numbers = {sequence: number for number, sequence in enumerate(sequences)}
        self._state = State(spec.max_slots, CAPACITY)
        num_rows = sum(sequence.num_slots for sequence in sequences)
        rows, slots = random.sample(range(num_rows), num_rows), random.sample(range(spec.max_slots), num_rows)
        self._owners: dict[int, Sequence] = {}
        self._running: dict[Sequence, list[int]] = {}
        for sequence in sequences:
            own = self._running[sequence] = rows[: sequence.num_slots]
            self._owners |= dict.fromkeys(own, sequence)
            self._state.join(sequence, own, slots[: sequence.num_slots], spec)
            del rows[: sequence.num_slots], slots[: sequence.num_slots]
        control = self._state.control
        control["num_rows"], control["eos_id"], control["decoder_start_id"] = num_rows, spec.eos_id, START_ID
        self._cache = np.full((spec.max_slots, CAPACITY), -1, np.int64)  # as the decoder's: each row's inputs
        self.answers: dict[Sequence, Answer] = {}

    def run(self, num_steps: int) -> bool:
        """Make some steps in one native run; returns whether sequences are still running."""
        num_tokens, renormalizes = self._model.num_tokens, self._spec.renormalizes
        with NativeSearch(self._library, self._state, num_tokens, renormalizes=renormalizes) as native:
            for _ in range(num_steps):
                num_generated = int(self._state.control["num_generated"])
                expected = sum(
                    int(self._state.rows["length"][own[0]]) >= len(sequence.forced_ids)
                    for sequence, own in self._running.items()
                )
                if not self._running:
                    break
                assert self._step(native) == self._collect()
                assert self._state.control["num_generated"] == num_generated + expected
        return bool(self._running)

    def _step(self, native: NativeSearch) -> bool:
        state = self._state
        live = native.live()
        assert live == np.flatnonzero(state.rows["status"][: state.control["num_rows"]] == RUNNING).tolist()
        projected = []
        for row, need in zip(live, native.needs(), strict=True):
            length, owner = int(state.rows["length"][row]), self._owners[row]
            self._cache[state.rows["slot"][row], length] = state.rows["token_id"][row]
            output_ids = state.output_ids[row, :length]
            if owner.num_slots > 1:
                inputs = self._cache[state.history[row, : length + 1], np.arange(length + 1)]
                assert inputs.tolist() == [self._spec.decoder_start_id, *output_ids.tolist()], "another one's cache"
            projected.append(self._model.of(self._numbers[owner], output_ids, need))
        return native.advance(projected)

    def _collect(self) -> bool:
        """Keep the answers of those that have ended; returns whether any has."""
        has_ended = False
        for sequence, own in list(self._running.items()):
            (status,) = set(self._state.rows["status"][own].tolist())
            if status != RUNNING:
                self.answers[sequence] = self._answer(sequence, own, status)
                del self._running[sequence]
                has_ended = True
        return has_ended

    def _answer(self, sequence: Sequence, own: list[int], status: int) -> Answer:
        state, options = self._state, sequence.options
        if status == BROKEN:
            return None
        leader = state.rows[own[0]]
        if sequence.num_slots > 1:
            finished, given_up = own[: leader["num_finished"]], own[: leader["num_given_up"]]
            places = [*finished, *(state.num_slots + row for row in given_up)]
            return tuple(self._hypothesis(sequence, place) for place in places[: options.num_hypotheses])
        output_ids = tuple(state.output_ids[own[0], : leader["length"]].tolist())
        is_at_limit = len(output_ids) == leader["limit"]
        assert (status == STOPPED) == (output_ids[-1] == EOS_ID)
        assert (status == REPEATING) == (leader["excess"] > 0)
        assert status != AT_LIMIT or is_at_limit
        own_score = math.nan
        if options.return_scores:
            length = len(output_ids) + (status != STOPPED and is_at_limit and options.forces_end)
            own_score = score(sequence, float(leader["log_prob"]), length)
        return (decoded(sequence, own_score, output_ids, int(leader["excess"]), EOS_ID),)

    def _hypothesis(self, sequence: Sequence, place: int) -> DecodedHypothesis:
        score, length, excess, _ = self._state.hypotheses[place].tolist()
        return decoded(sequence, score, tuple(self._state.hypothesis_ids[place, :length].tolist()), excess, EOS_ID)


def decode(library: Path, sequences: Several[Sequence], model: RandomModel, *, num_steps: int = 5,
           renormalizes: bool = False, seed: int = 0) -> list[Answer]:  # fmt: skip
    """Decode, some steps per native run; returns the answers."""
    num_rows = sum(sequence.num_slots for sequence in sequences)
    spec = RunnerSpec(num_rows + 3, CAPACITY, 64, EOS_ID, START_ID, 1, has_logits=True, renormalizes=renormalizes)
    decoding = Decoding(library, sequences, model, spec, Random(seed))
    while decoding.run(num_steps):
        pass
    return [decoding.answers[sequence] for sequence in sequences]
