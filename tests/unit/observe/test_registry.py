"""Metrics that prometheus_client does not have."""

from service.observe.registry import Registry


def test_a_value_observed_several_times_at_once_is_counted_as_often() -> None:
    registry = Registry()
    at_once, one_by_one = (registry.of_steps(name, "Rows.", (1.0, 2.0, 4.0)) for name in ("once", "each"))
    for value, count in ((0.5, 3), (2.0, 5), (2.5, 0), (3.0, 1), (9.0, 2)):
        at_once.labels("en-de").observe_times(value, count)
        for _ in range(count):
            one_by_one.labels("en-de").observe(value)
    samples: dict[str, list[tuple[str, str | None, float]]] = {"once": [], "each": []}
    for sample in registry.samples():
        name = sample.name.removeprefix("dragoman_")
        if name[:4] in samples and not name.endswith("_created"):
            samples[name[:4]].append((name[4:], sample.labels.get("le"), sample.value))
    assert samples["once"] == samples["each"]
    assert ("_count", None, 11.0) in samples["once"]
