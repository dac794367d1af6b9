"""A lane: one runner's rows, and what the one thread that owns them does with them in a turn."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from service.domain.errors import EngineFailure
from service.engine.decoder import Decoder, StepResult
from service.engine.integrity import expect
from service.engine.pace import Pace
from service.engine.runner import Runner
from service.engine.scheduler import StepPlan, schedule
from service.engine.sequence import Sequence
from service.engine.stats import TurnStats

_MAX_FAILED_TURNS = 5  # in a row; then the fault is not a sequence's but the engine's


@dataclass(slots=True)
class Turn:
    """What a turn did: who joined, who could not, what the step gave, and when each part began and ended."""

    plan: StepPlan
    began: float
    encoded: float
    stepped: float
    num_rows: int = 0
    refused: list[tuple[Sequence, EngineFailure]] = field(default_factory=list)
    result: StepResult = field(default_factory=StepResult)


class Lane:
    """Belongs to its thread; others read its sizes, and add to `doomed` under the engine's lock."""

    def __init__(
        self, runner: Runner, max_encode_tokens: int, clock: Callable[[], float], *, checks_integrity: bool
    ) -> None:
        self.runner = runner
        self.decoder = Decoder(runner, checks_integrity=checks_integrity)
        self.batch = self.decoder.batch
        self.doomed: list[Sequence] = []  # running, but nobody waits for them: to be removed before the next turn
        self.turn_began: float | None = None  # `None` between turns
        self.unreported: list[TurnStats] = []
        self._clock = clock
        self._pace = Pace(max_encode_tokens)
        self._num_failed_turns = 0

    def remove_doomed(self) -> None:
        """Free the rows of those that nobody waits for."""
        for sequence in self.doomed:
            self.decoder.remove(sequence)
        self.doomed.clear()

    def schedule(self, candidates: Iterable[Sequence], max_sequences: int) -> StepPlan:
        """Who joins in the next turn, at most `max_sequences`."""
        batch = self.batch
        budget = self._pace.encode_tokens(batch.num_rows, batch.num_free)
        return schedule(candidates, batch.num_free, budget, max_sequences)

    def run(self, plan: StepPlan) -> Turn:
        """Encode who joins, and move all rows one token on.

        Raises:
            RuntimeError: this and all the last turns failed.
        """
        began = self._clock()
        refused = self.decoder.admit(plan.admitted) if plan.admitted else []
        encoded = self._clock()
        num_rows = self.batch.num_rows
        result = self.decoder.step() if num_rows else StepResult()
        turn = Turn(plan, began, encoded, self._clock(), num_rows, refused, result)
        if plan.admitted:
            self._pace.encoded(plan.num_padded_tokens, encoded - began)
        if num_rows:
            self._pace.stepped(turn.stepped - encoded)
        return turn

    def check_integrity(self, at_home: Collection[Sequence], joining: Collection[Sequence] = ()) -> None:
        """Check that those in the batch, and those who are `joining` it, are at home here, or doomed.

        Raises:
            IntegrityError: it is not so; says what is wrong.
        """
        expect(len(set(self.doomed)) == len(self.doomed), "a sequence is doomed twice")
        expect(not set(self.doomed).intersection(at_home), "somebody waits for a doomed sequence")
        expected, found = {*at_home, *self.doomed}, {*self.batch.sequences, *joining}
        lost, strange = len(expected - found), len(found - expected)
        expect(not lost, f"{lost} of {len(expected)} sequences at home in a lane have no rows there")
        expect(not strange, f"{strange} of {len(found)} sequences have rows in a lane where they are not at home")
        needed = sum(sequence.num_slots for sequence in joining)
        expect(needed <= self.batch.num_free, f"{needed} rows are promised, {self.batch.num_free} are free")

    def count_failures(self, turn: Turn) -> None:
        """Give up when turn after turn fails.

        Raises:
            RuntimeError: this was the last straw.
        """
        if turn.num_rows or turn.plan.admitted:
            has_run = turn.num_rows > 0 and not turn.result.has_run_failed
            self._num_failed_turns = 0 if has_run else self._num_failed_turns + 1
        if self._num_failed_turns >= _MAX_FAILED_TURNS:
            raise RuntimeError(f"{self._num_failed_turns} turns in a row failed; the log says why")
