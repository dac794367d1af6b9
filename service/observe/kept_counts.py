"""The counts of a worker process that outlive it: a server's counters must not fall because one of its workers ended.

Prometheus takes a counter that falls for one that has begun again at 0: `rate()` would count a second time what all
other workers have counted. What is kept is in the memory of the process that reads the workers. If that one starts
again, all counts fall at once, to what the present workers have counted; Prometheus handles this as a server's restart.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from service.observe.families import Family
from service.observe.merging import COUNTED, Labels, labels_of, merged

# Series with these labels end with what they name: when no worker reports it any more.
_BOUND = ("model", "version", "key")

_Values = Mapping[tuple[str, str], float]  # of one group of samples, by name and bucket


class KeptCounts:
    """What one worker had counted when it was last read, and what it had counted before it began again."""

    def __init__(self) -> None:
        self._process: float | None = None
        self._last: list[Family] = []
        self._values: dict[tuple[str, Labels], _Values] = {}  # of the last reading
        self._ended: list[Family] = []

    def read(self, families: Iterable[Family]) -> bool:
        """Take what the worker reports now; what it no longer counts is kept: everything, if it is another process.

        Return whether it is another process than at the last reading.
        """
        families = list(families)
        process, now = _start_of(families), [family for family in families if family.kind in COUNTED]
        values, is_other = _values(now), process != self._process
        lost = {key for key, group in self._values.items() if is_other or _has_ended(group, values.get(key))}
        if lost:
            self._ended = merged([self._ended, _only(self._last, lambda name, labels: (name, labels) in lost)], {})
        was, self._process, self._last, self._values = self._process, process, now, values
        return is_other and was is not None

    def kept(self, *, answers: bool) -> list[Family]:
        """Return the counts to add to what the worker reports now: all of them, if it does not answer."""
        return self._ended if answers else merged([self._last, self._ended], {})

    def forget(self, reported: Collection[Labels]) -> None:
        """Remove what has ended of models, versions and keys that are not `reported`, see `reported_by`."""
        self._ended = _only(self._ended, lambda _, labels: _bound(labels) in reported)


def reported_by(families: Iterable[Family]) -> set[Labels]:
    """Return the models, versions and keys that a worker reports; always with the empty one, of all other series."""
    return {_bound(labels_of(sample)) for family in families for sample in family.samples} | {()}


def _bound(labels: Labels) -> Labels:
    return tuple((name, value) for name, value in labels if name in _BOUND)


def _start_of(families: Iterable[Family]) -> float | None:
    """Return when the process began, which tells it from the one before; None where the platform does not tell."""
    starts = (family.samples[0].value for family in families if family.name == "process_start_time_seconds")
    return next(starts, None)


def _only(families: Iterable[Family], keeps: Callable[[str, Labels], bool]) -> list[Family]:
    """Return the groups of samples that `keeps` accepts, by the family's name and the group's labels."""
    return [
        family._replace(samples=[each for each in family.samples if keeps(family.name, labels_of(each))])
        for family in families
    ]


def _values(families: Iterable[Family]) -> dict[tuple[str, Labels], _Values]:
    values: dict[tuple[str, Labels], dict[tuple[str, str], float]] = {}
    for family in families:
        for sample in family.samples:
            group = values.setdefault((family.name, labels_of(sample)), {})
            group[sample.name, sample.labels.get("le", "")] = sample.value
    return dict(values)


def _has_ended(before: _Values, now: _Values | None) -> bool:
    """Return whether a group of samples has disappeared, or has begun again: lower, or created later."""
    if now is None:
        return True
    return any(
        now.get(key, value) > value if key[0].endswith("_created") else now.get(key, 0.0) < value
        for key, value in before.items()
    )
