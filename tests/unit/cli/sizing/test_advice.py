"""From figures to pods: replicas, requests, targets, and the chart's values."""

import pytest
import yaml

from service.cli.sizing.advice import GIB, MIB, Memory, advise, values
from service.cli.sizing.measured_server import Reading

SMALL = Memory(measured=160 * MIB, bundles=[10 * MIB], slots=32 * MIB)


@pytest.mark.parametrize(
    ("rate", "pods"),
    [
        (1.0, 2),  # never fewer than two
        (100.0, 2),  # one carries it, and one may be missing
        (130.0, 3),
        (300.0, 5),  # three carry it; at 0.65 of what each can do it takes five
        (1000.0, 16),
    ],
)
def test_pods_carry_the_rate_with_one_missing_and_room_for_peaks(rate: float, pods: int) -> None:
    advice = advise(rate, 100.0, 0.9, 2, SMALL)
    assert advice.pods == pods
    assert (advice.pods - 1) * 100.0 >= rate or advice.pods == 2
    assert advice.least_pods <= advice.pods < advice.most_pods


@pytest.mark.parametrize(("load", "target"), [(1.0, 0.65), (1.1, 0.65), (0.5, 0.32), (0.01, 0.01)])
def test_the_target_is_a_part_of_the_load_at_which_the_objective_is_kept(load: float, target: float) -> None:
    assert advise(300.0, 100.0, load, 2, SMALL).target_load == target


def test_memory_is_the_formula_of_the_documents_or_a_quarter_more_than_measured() -> None:
    assert SMALL.limit == 512 * MIB
    large = Memory(measured=900 * MIB, bundles=[647 * MIB, 10 * MIB], slots=200 * MIB, cache=64 * MIB)
    assert large.limit == pytest.approx(2 * 657 * MIB + 647 * MIB + 264 * MIB + 0.3 * GIB, abs=256 * MIB)
    assert Memory(4 * GIB, [MIB], 0.0).limit == 5 * GIB
    assert large.limit % (256 * MIB) == 0


def test_slots_of_all_models_add_up() -> None:
    assert Reading(0, 0, 0, {}, {}, {"a": 64, "b": 128}, {"a": 2.0, "b": 3.0}, 0).slots_bytes == 512


def test_values_are_those_of_the_chart() -> None:
    pool = yaml.safe_load(values(advise(300.0, 100.0, 1.0, 2, SMALL)))["pools"]["default"]
    assert pool == {
        "cpu": 2,
        "memory": "512Mi",
        "replicas": 5,
        "autoscaling": {"minReplicas": 2, "maxReplicas": 10, "targetLoad": 0.65},
    }
