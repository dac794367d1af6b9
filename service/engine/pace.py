"""The encoder's share of a turn, learnt from the measured durations of encoder runs and steps."""

_KEEP = 0.8  # weight of the estimate so far, at each new measurement


class Pace:
    """Divides a turn's time between running and new sequences.

    During an encoder run no sequence gets a token; while it is postponed, slots stay empty. So with at least half of
    the slots in use, encoding may take as long as a step: running sequences then slow down at most twofold. With more
    empty slots it may take longer, in proportion to empty slots per slot in use.
    """

    def __init__(self, max_tokens: int) -> None:
        """Bound an encoder run's padded area by `max_tokens`, whatever the durations."""
        self._max_tokens = max_tokens
        self._token_seconds = 0.0  # per padded source token; 0 while unknown
        self._step_seconds = 0.0

    def encoded(self, num_padded_tokens: int, seconds: float) -> None:
        """Record the duration of an encoder run."""
        self._token_seconds = _averaged(self._token_seconds, seconds / max(num_padded_tokens, 1))

    def stepped(self, seconds: float) -> None:
        """Record the duration of a step."""
        self._step_seconds = _averaged(self._step_seconds, seconds)

    def encode_tokens(self, num_rows: int, num_free: int) -> int:
        """Return the maximum padded source tokens to encode in this turn, at least 1, with `num_rows` slots in use."""
        if not num_rows or not self._token_seconds:
            return self._max_tokens
        seconds = self._step_seconds * max(1.0, num_free / num_rows)
        return int(min(max(seconds / self._token_seconds, 1.0), self._max_tokens))


def _averaged(so_far: float, seconds: float) -> float:
    return seconds if not so_far else _KEEP * so_far + (1.0 - _KEEP) * seconds
