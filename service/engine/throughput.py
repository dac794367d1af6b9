"""What is learnt from turns: decoding speed and output lengths, which tell waiting times, and the encoder's share."""

from service.engine.sequence import Sequence
from service.engine.step_times import StepTimes

_HALF_LIFE_SECONDS = 5.0  # of measured turns
_KEEP = 0.95  # weight of the estimate so far, at each sequence that ends or turn that encodes
_MOST_SLOWER = 4.0  # than the estimate so far: a machine's momentary stall predicts nothing
_FULL = 0.75  # of a worker's rows: a turn of so many or more measures the maximum speed
_KEEP_DURATION = 0.8  # likewise, at each encoder run and step
# Of an encoder run while others decode, and of a run of steps while others wait: so many times what encoding a source
# takes, within bounds. A turn costs time of its own, and sources that are encoded together share it. On a CPU without
# VNNI, where encoding one takes 2 to 4 ms, 96 callers of the shipped model got 296 calls/s when encoder runs might take
# 8 ms and runs 6, and 331 with this.
_SOURCES = 4.0
_LEAST_SECONDS, _MOST_SECONDS = 0.006, 0.020

# `excess` follows the multiple of its estimate that three of four sequences need at most. Of those that are accepted
# just so, that many are in time; a larger share is bought with rejections of calls that would have been in time.
_SHARE = 0.75
_ADJUST = 0.03  # at each sequence that ends
_NEARLY = 0.7  # of its estimate: whoever was accepted has as much time
_LEAST_EXCESS, _MOST_EXCESS = 0.85, 4.0
# Toward 1, at each sequence that ends and was not compared. Otherwise a high `excess` would keep itself: whoever would
# correct it is rejected because of it. A server with 2 times its capacity made a third of what it could that way.
_FORGET = 0.01


class Throughput:
    """Speeds in row-steps, each one step of one hypothesis: a beam of four makes four per step. Not thread-safe.

    A turn's duration grows with its rows, so there are two measures: `seconds_per_row` with all rows in use, which is
    how fast a queue gets shorter, and `turn_seconds` for a given number of rows, which is how fast a text grows. Of a
    turn of several steps, each counts as a turn. What estimates leave out, `excess` corrects.
    """

    def __init__(self, num_workers: int, max_rows: int, full_turn_seconds: float = 0.0) -> None:
        """Start with workers of `max_rows` rows each and the measured duration of a turn with all of them; 0 if
        unknown."""
        self.num_workers = num_workers
        self._max_rows = max_rows
        self._full_rows = max_rows if full_turn_seconds else 0.0
        self._full_seconds = full_turn_seconds
        self.full_turn_seconds = full_turn_seconds  # of a turn with all of its worker's rows in use; 0 while unknown
        self._steps = StepTimes(max_rows)
        self._encode_seconds = 0.0  # of a sequence
        self._excess = 1.0
        self._output_tokens = 1.0  # average output of sequences that ended; the next is of their sources
        self._source_tokens = 1.0
        self._has_ended = False

    def turned(
        self,
        num_rows: int,
        seconds: float,
        num_steps: int = 1,
        num_row_steps: int | None = None,
        *,
        num_encoded: int = 0,
        encode_seconds: float = 0.0,
    ) -> None:
        """Record the duration of a worker's turn of `num_steps` steps that began with `num_rows` rows, including
        `encode_seconds` for `num_encoded` new sequences. `num_row_steps` are less than the product of rows and steps if
        rows ended before the last step."""
        if num_encoded:
            encode_seconds = self._encoded(num_encoded, encode_seconds)
        full_seconds = self.full_turn_seconds
        seconds = num_steps * self._steps.measured(num_rows, (seconds - encode_seconds) / num_steps, full_seconds)
        if num_rows >= _FULL * self._max_rows:
            seconds += encode_seconds
            keep = 0.5 ** (seconds / _HALF_LIFE_SECONDS)
            row_steps = num_rows * num_steps if num_row_steps is None else num_row_steps
            self._full_rows = self._full_rows * keep + row_steps
            self._full_seconds = self._full_seconds * keep + seconds
            self.full_turn_seconds = self._full_seconds / self._full_rows * self._max_rows

    def ended(self, num_source_tokens: int, num_output_tokens: int) -> None:
        """Record the lengths of a sequence that was decoded to its end."""
        keep = _KEEP if self._has_ended else 0.0
        self._source_tokens = keep * self._source_tokens + (1.0 - keep) * num_source_tokens
        self._output_tokens = keep * self._output_tokens + (1.0 - keep) * max(num_output_tokens, 1)
        self._has_ended = True

    def took(self, expected_seconds: float, seconds: float) -> None:
        """Record that a sequence, expected to take `expected_seconds`, took `seconds`."""
        self._adjust(_SHARE if seconds > self._excess * expected_seconds else _SHARE - 1.0)

    def given_up(self, expected_seconds: float, seconds: float) -> None:
        """Record that a sequence, expected to take `expected_seconds`, had not ended after `seconds`, when its time was
        over or its caller left. That counts only if it is about what was expected: callers may leave at any time."""
        if seconds >= _NEARLY * expected_seconds:
            self._adjust(_SHARE)

    def not_compared(self) -> None:
        """Record that a sequence ended whose time says nothing about estimates: what is known of them gets older."""
        self._excess += _FORGET * (1.0 - self._excess)

    def _adjust(self, direction: float) -> None:
        self._excess = min(max(self._excess * (1.0 + _ADJUST * direction), _LEAST_EXCESS), _MOST_EXCESS)

    @property
    def excess(self) -> float:
        """Return what multiple of their estimates most sequences need at most."""
        return self._excess

    def expected_tokens(self, sequence: Sequence) -> float:
        """Estimate the number of steps of a sequence."""
        by_length = len(sequence.source_ids) * self._output_tokens / self._source_tokens
        return min(max(by_length, 1.0), float(sequence.max_tokens))

    def expected_rows(self, sequence: Sequence) -> float:
        """Estimate the number of row-steps of a sequence."""
        return sequence.num_slots * self.expected_tokens(sequence)

    @property
    def typical_tokens(self) -> float:
        """Return the average number of steps of a sequence."""
        return self._output_tokens

    @property
    def seconds_per_row(self) -> float:
        """Return the time per row-step when all workers are full; 0 while unknown."""
        return self.full_turn_seconds / self._max_rows / self.num_workers

    def turn_seconds(self, num_rows: int) -> float:
        """Estimate a worker's turn while `num_rows` rows are in use, where each that ends is followed by a new one; 0
        while unknown."""
        num_rows = min(num_rows, self._max_rows)
        seconds = self._steps.seconds(num_rows, self.full_turn_seconds)
        if self._has_ended:
            seconds += self._encode_seconds * num_rows / self._output_tokens
        return seconds

    def _encoded(self, num_sequences: int, seconds: float) -> float:
        """Record the duration of an encoder run; returns it, or the longest that is plausible."""
        each, known = seconds / num_sequences, self._encode_seconds
        if known:
            each = min(each, _MOST_SLOWER * known)
        self._encode_seconds = _KEEP * known + (1.0 - _KEEP) * each if known else each
        return each * num_sequences


class Pace:
    """Divides a turn's time between running and new sequences.

    During an encoder run no sequence gets a token; while it is postponed, slots stay empty. So with at least half of
    the slots in use, encoding may take as long as a run: running sequences then slow down at most twofold. With more
    empty slots it may take longer, in proportion to empty slots per slot in use. In any case it may take
    `awaited_seconds`: a pause that no reader notices, and sources encoded together cost less than one in each turn.
    """

    def __init__(self, max_tokens: int) -> None:
        """Bound an encoder run's padded area by `max_tokens`, whatever the durations."""
        self._max_tokens = max_tokens
        self._token_seconds = 0.0  # per padded source token; 0 while unknown
        self._source_seconds = 0.0  # per source, whatever its length; 0 while unknown
        self._step_seconds = 0.0

    @property
    def awaited_seconds(self) -> float:
        """Return how long a run of steps may take that somebody waits for, and an encoder run in any case."""
        return min(max(_SOURCES * self._source_seconds, _LEAST_SECONDS), _MOST_SECONDS)

    def encoded(self, num_sources: int, num_padded_tokens: int, seconds: float) -> None:
        """Record the duration of an encoder run."""
        self._source_seconds = _averaged(self._source_seconds, seconds / num_sources)
        self._token_seconds = _averaged(self._token_seconds, seconds / max(num_padded_tokens, 1))

    def stepped(self, seconds: float) -> None:
        """Record the duration of a run of one or more steps."""
        self._step_seconds = _averaged(self._step_seconds, seconds)

    def encode_tokens(self, num_rows: int, num_free: int) -> int:
        """Return the maximum padded source tokens to encode in this turn, at least 1, with `num_rows` slots in use."""
        if not num_rows or not self._token_seconds:
            return self._max_tokens
        seconds = max(self._step_seconds * max(1.0, num_free / num_rows), self.awaited_seconds)
        return int(min(max(seconds / self._token_seconds, 1.0), self._max_tokens))


def _averaged(so_far: float, seconds: float) -> float:
    return seconds if not so_far else _KEEP_DURATION * so_far + (1.0 - _KEEP_DURATION) * seconds
