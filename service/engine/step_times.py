"""How long a step takes, by the number of rows: what was measured, and what follows from it for other numbers."""

_KEEP = 0.98  # weight of the average so far, at each step
_KEEP_LATEST = 0.95
_KEEP_SLOWNESS = 0.9  # a machine's change of speed shows here first, not in the averages
_LEAST_SECONDS = 1e-6  # some clocks stand still meanwhile
_MOST_SLOWER = 4.0  # than the average so far: a machine's momentary stall predicts nothing


_Point = tuple[float, float]  # rows, seconds


class StepTimes:
    """Averages for numbers of rows with the same number of bits, and a line between neighbours. Not thread-safe.

    A server that is kept at some number of rows does not measure other numbers, and what it measured once may be wrong
    now. So averages are relative to the machine's speed, which every step measures; and estimates stay within what the
    latest steps allow: more rows take longer, at most in proportion.
    """

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._most_bits = max_rows.bit_length()
        self._points: dict[int, _Point] = {}  # by the number of bits, at a slowness of 1
        self._slowness = 1.0
        self._latest: _Point | None = None  # average of all steps, at any slowness

    def measured(self, num_rows: int, seconds: float, full_seconds: float) -> float:
        """Record a step; returns its duration, or the longest that is plausible.

        `full_seconds` is what a step with all rows takes, 0 if unknown.
        """
        seconds = max(seconds, _LEAST_SECONDS)
        number = num_rows.bit_length()
        known = self._points.get(number)
        if known:
            usual = known[1] * self._slowness
        else:
            scaled = (self._slowness * of_others * num_rows / rows for rows, of_others in self._points.values())
            usual = max([full_seconds, *scaled])
        if usual:
            seconds = min(seconds, _MOST_SLOWER * usual)
        if known:
            ratio = seconds / self._between(num_rows, full_seconds)
            self._slowness = _KEEP_SLOWNESS * self._slowness + (1.0 - _KEEP_SLOWNESS) * ratio
        self._points[number] = _averaged(known, num_rows, seconds / self._slowness, _KEEP)
        self._latest = _averaged(self._latest, num_rows, seconds, _KEEP_LATEST)
        return seconds

    def seconds(self, num_rows: int, full_seconds: float) -> float:
        """Estimate a step of `num_rows` rows; 0 while unknown. `full_seconds` as for `measured`."""
        if self._latest is None:
            return 0.0
        rows, latest = self._latest
        in_proportion = latest * num_rows / rows
        least, most = (in_proportion, latest) if num_rows < rows else (latest, in_proportion)
        return min(max(self._slowness * self._between(num_rows, full_seconds), least), most)

    def _between(self, num_rows: int, full_seconds: float) -> float:
        points, number = self._points, num_rows.bit_length()
        below, above = points.get(number), None
        if below is None or below[0] > num_rows:
            above, below = below, self._nearest(range(number - 1, 0, -1))
        if above is None:
            above = self._nearest(range(number + 1, self._most_bits + 1))
            above = above or (self._max_rows, full_seconds / self._slowness)
        more_rows, more_seconds = above
        if below is None:
            return more_seconds * num_rows / more_rows
        rows, seconds = below
        if more_rows <= rows or more_seconds <= seconds:
            return seconds
        return seconds + (more_seconds - seconds) * (num_rows - rows) / (more_rows - rows)

    def _nearest(self, numbers: range) -> _Point | None:
        for number in numbers:
            if (point := self._points.get(number)) is not None:
                return point
        return None


def _averaged(so_far: _Point | None, num_rows: int, seconds: float, keep: float) -> _Point:
    if so_far is None:
        return num_rows, seconds
    rest = 1.0 - keep
    return keep * so_far[0] + rest * num_rows, keep * so_far[1] + rest * seconds
