"""An engine that answers when the test decides, with the letters of the source in reverse."""

import asyncio

from service.domain.call import Origin
from service.domain.errors import Overloaded, ServiceError
from service.domain.translation import FinishReason, Priority
from service.engine.sequence import DecodedHypothesis, Sequence, SequenceUpdate
from tests.unit.translation.letters import PAIR


class ScriptedEngine:
    """Keeps its requests until the test decides how they end."""

    can_change_scores = True

    def __init__(self) -> None:
        self.submitted: list[Sequence] = []
        self.aborted: list[Sequence] = []
        self.refusal: ServiceError | None = None
        self.is_full = False
        self.arrived = asyncio.Event()

    def submit(self, sequences: list[Sequence]) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.submitted += sequences
        self.arrived.set()

    def check_queue(self, priority: Priority, origin: Origin) -> None:
        if self.is_full:
            raise Overloaded("full", 1.0)

    def check_alike(self, sequences: list[Sequence]) -> float:
        if self.refusal is not None:
            raise self.refusal
        return 0.0

    def abort(self, sequences: list[Sequence]) -> None:
        self.aborted += sequences


def answer(sequence: Sequence, score: float = -0.5) -> SequenceUpdate:
    """Return the engine's answer: the source's letters in reverse."""
    letters = sequence.source_ids[len(PAIR.source_prefix_ids) : -1]
    hypothesis = DecodedHypothesis(tuple(reversed(letters)), score, FinishReason.STOP)
    return SequenceUpdate(sequence, FinishReason.STOP, (hypothesis,))
