"""How long a step takes, by the number of rows: what was measured, and what follows from it for other numbers."""

from typing import NamedTuple

_KEEP = 0.98  # weight of the average so far, at each step
_KEEP_LATEST = 0.95
_KEEP_SLOWNESS = 0.9  # a machine's change of speed shows here first, not in the averages
_LEAST_SECONDS = 1e-6  # some clocks stand still meanwhile
_MOST_SLOWER = 4.0  # than the average so far: a machine's momentary stall predicts nothing


class _Point(NamedTuple):
    rows: float
    seconds: float


class StepTimes:
    """Averages for numbers of rows with the same number of bits, and a line between neighbours. Not thread-safe.

    A server that is kept at some number of rows does not measure other numbers, and what it measured once may be wrong
    now. So averages are relative to the machine's speed, which every step measures; and estimates stay within what the
    latest steps allow: more rows take longer, at most in proportion.
    """

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
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
            usual = known.seconds * self._slowness
        else:
            scaled = (self._slowness * each.seconds * num_rows / each.rows for each in self._points.values())
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
        latest = self._latest
        if latest is None:
            return 0.0
        in_proportion = latest.seconds * num_rows / latest.rows
        least, most = sorted((in_proportion, latest.seconds))
        return min(max(self._slowness * self._between(num_rows, full_seconds), least), most)

    def _between(self, num_rows: int, full_seconds: float) -> float:
        points, number = self._points, num_rows.bit_length()
        below = above = None
        for each in range(number, 0, -1):
            if (point := points.get(each)) is not None:
                if point.rows <= num_rows:
                    below = point
                    break
                above = point
        if above is None:
            larger = (points[each] for each in range(number + 1, self._max_rows.bit_length() + 1) if each in points)
            above = next(larger, _Point(self._max_rows, full_seconds / self._slowness))
        if below is None:
            return above.seconds * num_rows / above.rows
        if above.rows <= below.rows or above.seconds <= below.seconds:
            return below.seconds
        share = (num_rows - below.rows) / (above.rows - below.rows)
        return below.seconds + share * (above.seconds - below.seconds)


def _averaged(so_far: _Point | None, num_rows: int, seconds: float, keep: float) -> _Point:
    if so_far is None:
        return _Point(num_rows, seconds)
    return _Point(keep * so_far.rows + (1.0 - keep) * num_rows, keep * so_far.seconds + (1.0 - keep) * seconds)
