"""How much may be encoded between two steps, learnt from how long both have taken."""

_KEEP = 0.8  # of the estimate so far, at each new measurement


class Pace:
    """Shares the time of a turn between sequences that run and newcomers.

    While an encoder run lasts, nobody gets a token; while it is put off, slots stay empty. So with half of the slots
    or more in use, encoding may take as long as a step: then those who run are slowed down at most twofold. With more
    slots empty it may take longer, in proportion to empty slots per slot in use.
    """

    def __init__(self, max_tokens: int) -> None:
        """`max_tokens` bounds an encoder run's padded area, whatever the times."""
        self._max_tokens = max_tokens
        self._token_seconds = 0.0  # per padded source token; 0 while unknown
        self._step_seconds = 0.0

    def encoded(self, num_padded_tokens: int, seconds: float) -> None:
        """An encoder run took so long."""
        self._token_seconds = _averaged(self._token_seconds, seconds / max(num_padded_tokens, 1))

    def stepped(self, seconds: float) -> None:
        """A step took so long."""
        self._step_seconds = _averaged(self._step_seconds, seconds)

    def encode_tokens(self, num_rows: int, num_free: int) -> int:
        """Most padded source tokens to encode in this turn, at least 1, with `num_rows` slots in use."""
        if not num_rows or not self._token_seconds:
            return self._max_tokens
        seconds = self._step_seconds * max(1.0, num_free / num_rows)
        return int(min(max(seconds / self._token_seconds, 1.0), self._max_tokens))


def _averaged(so_far: float, seconds: float) -> float:
    return seconds if not so_far else _KEEP * so_far + (1.0 - _KEEP) * seconds
