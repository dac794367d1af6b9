"""How long tests wait on a machine that is slow or busy: every bound is multiplied by how slow it was found to be."""

import time

_STEPS = 4_000_000
_QUICK_SECONDS = 0.2  # that they take on a machine with nothing else to do
_MOST = 20.0


def _slowness() -> float:
    """How many times longer than there they take, by the wall's clock: others at work count as well."""
    began = time.monotonic()
    for _ in range(_STEPS):
        pass
    return min(max(1.0, (time.monotonic() - began) / _QUICK_SECONDS), _MOST)


SLOWNESS = _slowness()


def patient(seconds: float) -> float:
    """A bound on what takes less than `seconds` on a machine that is neither slow nor busy."""
    return seconds * SLOWNESS
