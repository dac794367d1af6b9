"""Decides how many steps a run makes: many cost little of the interpreter's time, few let others in soon."""

import math

from service.engine.runner import RunLimits

_SECONDS = 0.010  # of a run that nobody waits for
_MOST_STEPS = 64

# How many sequences must end before a run returns to let waiting ones join. With n sequences of L steps, one ends each
# L / n steps. A turn that lets N join costs P seconds of its own, and the empty rows until then, at a share f of the
# step's time s, N^2 / 2 x f L s / n^2. Per sequence, that is least for N = n sqrt(2 P / (f L s)); here for P = 0.6 ms,
# f = 0.6 and L = 25.
_END_SECONDS = 0.00008
_KEEP = 0.8  # weight of the estimate so far, at each run
_MOST_SLOWER = 4.0  # than the estimate so far: a machine's momentary stall predicts nothing


class RunLength:
    """Learns how long a worker's steps take, by the number of rows. Used by one thread."""

    def __init__(self) -> None:
        self._step_seconds: dict[int, float] = {}  # by the number of bits of the number of rows

    def measured(self, num_rows: int, num_steps: int, seconds: float) -> None:
        """Record a run of `num_steps` steps, which began with `num_rows` rows."""
        if not num_steps:
            return
        bucket, step_seconds = num_rows.bit_length(), seconds / num_steps
        known = self._step_seconds.get(bucket)
        if known:
            step_seconds = _KEEP * known + (1.0 - _KEEP) * min(step_seconds, _MOST_SLOWER * known)
        self._step_seconds[bucket] = step_seconds

    def step_seconds(self, num_rows: int) -> float:
        """Estimate the time of a step, from the nearest number of rows that was measured; 0 while unknown."""
        bucket = num_rows.bit_length()
        if (known := self._step_seconds.get(bucket)) is not None:
            return known
        if not self._step_seconds:
            return 0.0
        nearest = min(self._step_seconds, key=lambda each: (abs(each - bucket), each))
        return self._step_seconds[nearest] * max(1.0, 2.0 ** (bucket - nearest))

    def limits(
        self,
        num_rows: int,
        num_sequences: int,
        awaited_seconds: float,
        *,
        is_awaited: bool,
        needs_row: bool,
        seconds_left: float | None = None,
        steps_to_first_token: int | None = None,
    ) -> RunLimits:
        """Return the limits of the next run, with `num_rows` rows of `num_sequences` sequences.

        `awaited_seconds` is how long it may take if somebody waits for it when it begins, and how long in any case if
        somebody begins to wait while it is under way. A turn takes the interpreter from the event loop: with runs of 3
        ms, and those that ended at each newcomer, a server of short texts had a quarter less capacity.
        `is_awaited` says whether somebody waits for the run's end: to join, or for tokens. `needs_row` says whether
        sequences wait that can join only once others have ended. `seconds_left` is the time to the next deadline,
        `steps_to_first_token` how many steps somebody must wait for the first token that can be reported.
        """
        seconds = awaited_seconds if is_awaited else max(_SECONDS, awaited_seconds)
        if seconds_left is not None:
            seconds = min(seconds, seconds_left)
        step_seconds = self.step_seconds(num_rows)
        if not step_seconds:
            return RunLimits(1, 1 if needs_row else 0)
        steps = min(seconds / step_seconds, _MOST_STEPS)
        if steps_to_first_token is not None:
            steps = min(steps, steps_to_first_token)
        return RunLimits(
            max(int(steps), 1),
            _returns_after(num_rows, num_sequences, step_seconds) if needs_row else 0,
            int(awaited_seconds / step_seconds),
        )


def _returns_after(num_rows: int, num_sequences: int, step_seconds: float) -> int:
    """Return how many rows must end before it pays to let others join."""
    ended = int(num_sequences * math.sqrt(_END_SECONDS / step_seconds))
    return min(max(ended, 1), num_sequences) * num_rows // num_sequences
