"""Decides how many steps a run makes: many cost little of the interpreter's time, few let others in soon."""

from service.engine.runner import RunLimits

_SECONDS = 0.010  # of a run that nobody waits for
_AWAITED_SECONDS = 0.003
_MOST_STEPS = 64
_LONG_STEP_SECONDS = 0.0005  # more than a turn without its run takes: then a row that has ended is given away at once
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
        if not self._step_seconds:
            return 0.0
        bucket = num_rows.bit_length()
        nearest = min(self._step_seconds, key=lambda each: (abs(each - bucket), each))
        return self._step_seconds[nearest] * max(1.0, 2.0 ** (bucket - nearest))

    def limits(
        self,
        num_rows: int,
        *,
        is_awaited: bool,
        needs_row: bool,
        seconds_left: float | None = None,
        steps_to_first_token: int | None = None,
    ) -> RunLimits:
        """Return the limits of the next run, with `num_rows` rows.

        `is_awaited` says whether a sequence waits for slots or for its tokens, and `needs_row` whether one could join
        as soon as a row ends. `seconds_left` is the time to the next deadline, `steps_to_first_token` how many steps
        somebody must wait for the first token that can be reported.
        """
        seconds = _AWAITED_SECONDS if is_awaited else _SECONDS
        if seconds_left is not None:
            seconds = min(seconds, seconds_left)
        step_seconds = self.step_seconds(num_rows)
        steps = min(seconds / step_seconds, _MOST_STEPS) if step_seconds else 1
        if steps_to_first_token is not None:
            steps = min(steps, steps_to_first_token)
        return RunLimits(max(int(steps), 1), needs_row and step_seconds >= _LONG_STEP_SECONDS)
