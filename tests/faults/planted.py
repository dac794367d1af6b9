"""Faults that several tests inject."""

import pytest

from service.engine.runner import RunLimits
from service.engine.search import Outcome
from service.engine.worker import Worker


def swap_answers(patch: pytest.MonkeyPatch) -> None:
    """Exchange the tokens of two sequences that end in the same step."""
    step = Worker.step

    def swapped(self: Worker, limits: RunLimits) -> Outcome:
        result = step(self, limits)
        if len(result.finished) > 1:
            (one, a), (other, b), *rest = result.finished
            result.finished = [(one, b), (other, a), *rest]
        return result

    patch.setattr(Worker, "step", swapped)
