"""The metrics of several worker processes as those of one server. Pure functions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from service.observe.families import Exemplar, Family, Merge, Sample

# What is counted. Triton's metrics are counters by meaning, and of unknown type because of their names.
COUNTED = frozenset({"counter", "histogram", "unknown"})

# Labels of a group of samples: all but `le`, in order of names.
Labels = tuple[tuple[str, str], ...]

_COMBINE: dict[Merge, Callable[[Sequence[float]], float]] = {
    Merge.SUM: sum,
    Merge.MIN: min,
    Merge.MAX: max,
    Merge.MEAN: lambda values: sum(values) / len(values),
    Merge.SAME: max,
}


class UnruledGauge(Exception):
    """A gauge has no rule for merging; every gauge gets one where it is defined."""


class _Merged(NamedTuple):
    """The values of one sample in all parts, and the last of its exemplars."""

    sample: Sample
    values: list[float]


def labels_of(sample: Sample) -> Labels:
    """Return the labels of the group that the sample belongs to: the buckets, sum and count of a histogram are one."""
    return tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))


def merged(parts: Iterable[Iterable[Family]], rules: Mapping[str, Merge]) -> list[Family]:
    """Return the families of all parts, each sample once: counts are added, gauges are merged by `rules`, by name.

    Counters, histograms and the untyped are counts. Their creation times become the earliest, their exemplars the
    latest. A sample that only some parts have is merged from these.
    """
    families: dict[str, tuple[Family, dict[Labels, dict[tuple[str, str], _Merged]]]] = {}
    for part in parts:
        for family in part:
            _, groups = families.setdefault(family.name, (family, {}))
            for sample in family.samples:
                _add(groups.setdefault(labels_of(sample), {}), sample)
    return [
        family._replace(samples=list(_samples(_rule(family, rules), groups.values())))
        for family, groups in families.values()
    ]


def _add(group: dict[tuple[str, str], _Merged], sample: Sample) -> None:
    key = sample.name, sample.labels.get("le", "")
    known = group.get(key)
    if known is None:
        group[key] = _Merged(sample, [sample.value])
        return
    known.values.append(sample.value)
    if sample.exemplar is not None:
        latest = _later(known.sample.exemplar, sample.exemplar)
        group[key] = known._replace(sample=known.sample._replace(exemplar=latest))


def _later(one: Exemplar | None, other: Exemplar) -> Exemplar:
    return other if one is None or other.time_seconds > one.time_seconds else one


def _rule(family: Family, rules: Mapping[str, Merge]) -> Merge:
    if family.kind in COUNTED:
        return Merge.SUM
    try:
        return rules[family.name]
    except KeyError:
        raise UnruledGauge(
            f"{family.name} ({family.kind}) has no rule for merging; its definition must give one of Merge"
        ) from None


def _samples(rule: Merge, groups: Iterable[Mapping[tuple[str, str], _Merged]]) -> Iterator[Sample]:
    for group in groups:
        for sample, values in group.values():
            applied = Merge.MIN if sample.name.endswith("_created") else rule
            yield sample._replace(value=_COMBINE[applied](values))
