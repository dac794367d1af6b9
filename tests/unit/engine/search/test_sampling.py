import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.search import sampling


def uniforms(seed: int, positions: range) -> list[float]:
    seeds = np.full(len(positions), seed, np.uint64)
    return list(map(float, sampling.uniforms(seeds, np.array(positions, np.int32))))


def choose(
    probabilities: list[float], chance: float, temperature: float = 1.0, top_k: int = 64, top_p: float = 1.0
) -> int:
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.array([probabilities], np.float32))
    (column,) = sampling.choose(
        log_probs,
        np.array([temperature], np.float32),
        np.array([top_k], np.int32),
        np.array([top_p], np.float32),
        np.array([chance]),
    )
    return int(column)


def test_random_numbers_are_those_of_splitmix64() -> None:
    """The published generator's first outputs for seed 1234567, which other implementations test against."""
    words = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert uniforms(1234567, range(3)) == [(word >> 11) * 2.0**-53 for word in words]


def test_random_numbers_are_spread_evenly() -> None:
    numbers = uniforms(3, range(10_000))
    tenths = Counter(math.floor(10 * number) for number in numbers)
    assert set(tenths) == set(range(10))
    assert all(900 < count < 1100 for count in tenths.values())
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.05


def test_neighbouring_seeds_and_samples_have_nothing_in_common() -> None:
    seeds = [sampling.stream_seed(seed, sample) for seed in range(50) for sample in range(8)]
    assert len(set(seeds)) == len(seeds)
    first, second = (uniforms(sampling.stream_seed(5, sample), range(2000)) for sample in (0, 1))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1


@pytest.mark.parametrize(
    ("chance", "column"), [(0.0, 0), (0.49, 0), (0.51, 1), (0.79, 1), (0.81, 2), (1 - 2.0**-53, 2)]
)
def test_a_chance_falls_into_the_share_of_its_candidate(chance: float, column: int) -> None:
    assert choose([0.5, 0.3, 0.2], chance) == column


def test_temperature_flattens_or_sharpens() -> None:
    assert choose([0.5, 0.3, 0.2], 0.75, temperature=0.1) == 0
    assert choose([0.5, 0.3, 0.2], 0.75, temperature=10.0) == 2


def test_top_k_and_top_p_keep_the_best() -> None:
    last = 1 - 2.0**-53
    assert choose([0.4, 0.3, 0.2, 0.1], last, top_k=2) == 1
    assert choose([0.4, 0.3, 0.2, 0.1], last, top_p=0.6) == 1  # the fewest that hold 0.6
    assert choose([0.4, 0.3, 0.2, 0.1], last, top_p=1e-9) == 0
    assert choose([0.4, 0.3, 0.2, 0.1], last, top_k=2, top_p=0.55) == 0  # of the two best, the first holds 4/7


def test_what_is_impossible_is_never_chosen() -> None:
    assert choose([0.5, 0.5, 0.0], 1 - 2.0**-53) == 1
    assert choose([1.0, 0.0], 1 - 2.0**-53, temperature=10.0) == 0


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=64),
    st.floats(0.05, 5.0),
    st.integers(1, 64),
    st.floats(0.01, 1.0),
)
def test_shares_are_those_of_the_distribution(
    weights: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    """Compared with the definition in plain Python, on a grid of random numbers."""
    weights = sorted(weights, reverse=True)
    log_probs = np.log(np.array(weights, np.float32) / sum(weights)).astype(np.float64).tolist()
    sharpened = [math.exp((log_prob - log_probs[0]) / np.float32(temperature)) for log_prob in log_probs][:top_k]
    kept: list[float] = []
    for weight in sharpened:
        if kept and sum(kept) >= float(np.float32(top_p)) * sum(sharpened):
            break
        kept.append(weight)
    for chance in np.linspace(0.0, 0.999, 23):
        total, expected = 0.0, 0
        for expected, weight in enumerate(kept):  # noqa: B007
            total += weight
            if total > chance * sum(kept):
                break
        got = choose([weight / sum(weights) for weight in weights], float(chance), temperature, top_k, top_p)
        if got != expected:  # only where rounding decides
            edges = np.cumsum(kept) / sum(kept)
            near_edge = np.abs(edges - chance).min() < 1e-6
            near_cut = np.abs(np.cumsum(sharpened) / sum(sharpened) - top_p).min() < 1e-6
            assert near_edge or near_cut
