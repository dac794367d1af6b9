"""How fast an engine decodes and how long outputs are, learnt from its turns: what estimates of waiting rest on."""

from service.engine.sequence import Sequence

_HALF_LIFE_SECONDS = 5.0  # of turns that were measured
_KEEP = 0.95  # of what was learnt so far, at each sequence that ends or turn of a bucket
_MOST_SLOWER = 4.0  # than was known: a machine that stood still for a moment says nothing of the next
_FULL = 0.75  # of a lane's rows: from here on a turn tells how fast all lanes are at most


class Throughput:
    """Rows are steps of one hypothesis: a beam of four makes four rows a step. Not thread-safe.

    A turn's time grows with its rows, so there are two answers: `seconds_per_row` when all rows are in use, which is
    how fast a queue gets shorter, and `turn_seconds` of as many rows as there are, which is how fast a text grows.
    """

    def __init__(self, num_lanes: int, max_rows: int, full_turn_seconds: float = 0.0) -> None:
        """Each lane has `max_rows`; a run of so many took `full_turn_seconds` when it was tried, 0: unknown."""
        self._num_lanes = num_lanes
        self._max_rows = max_rows
        self._full_rows = max_rows if full_turn_seconds else 0.0
        self._full_seconds = full_turn_seconds
        self._turn_seconds: dict[int, float] = {}  # by the number of bits of the number of rows
        self._output_tokens = 1.0  # of a sequence that ended, on the average; of its source the next
        self._source_tokens = 1.0
        self._has_ended = False

    def turned(self, num_rows: int, seconds: float) -> None:
        """A lane's turn with so many rows took so long, newcomers' encoding and all else included."""
        bucket = num_rows.bit_length()
        known = self._turn_seconds.get(bucket)
        if usual := known or self._guessed_seconds(num_rows):
            seconds = min(seconds, _MOST_SLOWER * usual)
        self._turn_seconds[bucket] = seconds if known is None else _KEEP * known + (1.0 - _KEEP) * seconds
        if num_rows >= _FULL * self._max_rows:
            keep = 0.5 ** (seconds / _HALF_LIFE_SECONDS)
            self._full_rows = self._full_rows * keep + num_rows
            self._full_seconds = self._full_seconds * keep + seconds

    def ended(self, num_source_tokens: int, num_output_tokens: int) -> None:
        """A sequence was decoded to its end."""
        keep = _KEEP if self._has_ended else 0.0
        self._source_tokens = keep * self._source_tokens + (1.0 - keep) * num_source_tokens
        self._output_tokens = keep * self._output_tokens + (1.0 - keep) * max(num_output_tokens, 1)
        self._has_ended = True

    def expected_tokens(self, sequence: Sequence) -> float:
        """How many steps a sequence will probably take."""
        by_length = len(sequence.source_ids) * self._output_tokens / self._source_tokens
        return min(max(by_length, 1.0), float(sequence.max_tokens))

    def expected_rows(self, sequence: Sequence) -> float:
        """How many rows of steps a sequence will probably take."""
        return sequence.num_slots * self.expected_tokens(sequence)

    @property
    def typical_tokens(self) -> float:
        """How many steps a sequence takes on the average."""
        return self._output_tokens

    @property
    def seconds_per_row(self) -> float:
        """What one row of one step costs when all lanes are full; 0 while that is unknown."""
        if not self._full_rows:
            return 0.0
        return self._full_seconds / self._full_rows / self._num_lanes

    @property
    def full_turn_seconds(self) -> float:
        """How long a turn takes when all rows of its lane are in use; 0 while that is unknown."""
        return self.seconds_per_row * self._max_rows * self._num_lanes

    def _guessed_seconds(self, num_rows: int) -> float:
        """How long a turn like none so far takes at most: as a full one, or, by its rows, as others; 0: unknown."""
        others = (seconds * num_rows / (1 << (bucket - 1)) for bucket, seconds in self._turn_seconds.items())
        return max([self.full_turn_seconds, *others])

    def turn_seconds(self, num_rows: int) -> float:
        """How long a lane's turn with so many rows takes, or, where there was none, one with fewer; 0 while unknown."""
        for bucket in range(num_rows.bit_length(), 0, -1):
            if (seconds := self._turn_seconds.get(bucket)) is not None:
                return seconds
        return 0.0
