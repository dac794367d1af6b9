"""Faults that several tests plant."""

from typing import Any

import pytest

from service.engine.decoder import Decoder, StepResult


def swap_answers(patch: pytest.MonkeyPatch) -> None:
    """Two sequences that end in the same step get each other's tokens."""
    step = Decoder.step

    def swapped(self: Decoder, **how: Any) -> StepResult:
        result = step(self, **how)
        if len(result.finished) > 1:
            (one, a), (other, b), *rest = result.finished
            result.finished = [(one, b), (other, a), *rest]
        return result

    patch.setattr(Decoder, "step", swapped)
