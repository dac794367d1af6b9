"""Estimates of the costs of steps, encoder runs and outputs, learnt from earlier ones: the engine's only ones."""

from collections.abc import Mapping

import numpy as np

from service.engine.sequence import Sequence

_KEEP = 0.98  # weight of what was measured so far, at each measurement
_LEAST_SECONDS = 1e-6  # of a step: some clocks stand still meanwhile

# A measurement counts as at most so many times the mean: a machine's momentary stall predicts nothing.
_MOST = 4.0


class Average:
    """A measurement per unit: the total over the number of units, later measurements counting more."""

    def __init__(self, mean: float = 0.0, count: float = 0.0) -> None:
        """Start with `mean` as if `count` units had been measured in a first measurement; 0 if nothing is known."""
        self.mean = mean
        self._total = mean * count
        self._count = count

    def add(self, total: float, count: float) -> None:
        if self.mean:
            total = min(total, _MOST * self.mean * count)
        self._total = _KEEP * self._total + total
        self._count = _KEEP * self._count + count
        self.mean = self._total / self._count


class Costs:
    """The costs of work on an engine's workers. Not thread-safe: the engine uses it under its lock.

    A row-step is one step of one hypothesis: a beam of four makes four per step. Warm-up measures once how a step's
    time grows with its rows; turns measure a common slowdown, at any number of rows, which then applies to all numbers.
    """

    def __init__(self, num_workers: int, max_rows: int, step_seconds: Mapping[int, float] | None = None) -> None:
        """Start with workers of `max_rows` rows each; `step_seconds` are measured durations of a worker's step by the
        number of its rows. Without them, estimates are 0 until a step has been measured, and then the same for any
        number."""
        self.num_workers = num_workers
        self.max_rows = max_rows
        points = sorted((step_seconds or {max_rows: 1.0}).items())
        rows, seconds = zip(*points, strict=True)
        longest_so_far = np.maximum(np.maximum.accumulate(seconds), _LEAST_SECONDS)  # only by noise do more take less
        self._shape: list[float] = np.interp(range(max_rows + 1), rows, longest_so_far).tolist()
        self._slowness = Average(1.0, self._shape[max_rows]) if step_seconds else Average()  # of a step, by its shape
        self._live_share = Average(1.0, 1.0)  # of rows times steps; rows that end within a run make no more steps
        self._other_seconds = Average()  # of a turn, per step: what is done before and after its runs
        self._source_seconds = Average()
        self._token_seconds = Average()
        self._output_tokens = Average()  # of a sequence
        self._output_share = Average()  # output tokens per source token

    def stepped(
        self, num_rows: int, num_steps: int, num_row_steps: int, seconds: float, other_seconds: float = 0.0
    ) -> None:
        """Record a run that began with `num_rows` rows, and the `other_seconds` of its turn besides it and encoding."""
        self._other_seconds.add(other_seconds, num_steps)
        self._slowness.add(max(seconds, num_steps * _LEAST_SECONDS), num_steps * self._shape[num_rows])
        self._live_share.add(num_row_steps, num_rows * num_steps)

    def encoded(self, num_sources: int, num_padded_tokens: int, seconds: float) -> None:
        self._source_seconds.add(seconds, num_sources)
        self._token_seconds.add(seconds, max(num_padded_tokens, 1))

    def ended(self, sequence: Sequence, num_output_tokens: int) -> None:
        num_output_tokens = max(num_output_tokens, 1)
        self._output_tokens.add(num_output_tokens, 1)
        self._output_share.add(num_output_tokens, len(sequence.source_ids))

    @property
    def source_seconds(self) -> float:
        """Return the time of encoding a source of the usual length; 0 while unknown."""
        return self._source_seconds.mean

    @property
    def token_seconds(self) -> float:
        """Return the time of encoding a padded source token; 0 while unknown."""
        return self._token_seconds.mean

    @property
    def typical_tokens(self) -> float:
        """Return the average number of steps of a sequence; 1 while unknown."""
        return self._output_tokens.mean or 1.0

    def expected_tokens(self, sequence: Sequence) -> float:
        by_length = len(sequence.source_ids) * (self._output_share.mean or 1.0)
        return min(max(by_length, 1.0), float(sequence.max_tokens))

    def step_seconds(self, num_rows: int) -> float:
        """Estimate a worker's step with `num_rows` rows in use; 0 while unknown."""
        return self._slowness.mean * self._shape[min(num_rows, self.max_rows)]

    def turn_seconds(self, num_rows: int) -> float:
        """Estimate a step with its share of the turn, such as encoding one source per ended sequence; 0 if unknown."""
        num_rows = min(num_rows, self.max_rows)
        seconds = self._slowness.mean * self._shape[num_rows]
        if not seconds:
            return 0.0
        num_tokens = self._output_tokens.mean
        encode_seconds = self._source_seconds.mean * num_rows / num_tokens if num_tokens else 0.0
        return seconds + self._other_seconds.mean + encode_seconds

    @property
    def full_turn_seconds(self) -> float:
        return self.turn_seconds(self.max_rows)

    @property
    def seconds_per_row(self) -> float:
        """Return the time per row-step while all workers are full: how fast a queue gets shorter; 0 while unknown."""
        return self.full_turn_seconds / (self.max_rows * self.num_workers * self._live_share.mean)
