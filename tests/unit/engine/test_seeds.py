import math
from collections import Counter

import numpy as np

from service.engine.sequence import stream_seed
from tests.unit.engine.reference_search import uniform


def uniforms(seed: int, positions: range) -> list[float]:
    return [uniform(seed, position) for position in positions]


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
    seeds = [stream_seed(seed, sample) for seed in range(50) for sample in range(8)]
    assert len(set(seeds)) == len(seeds)
    first, second = (uniforms(stream_seed(5, sample), range(2000)) for sample in (0, 1))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1


def test_a_seed_stays_what_it_was() -> None:
    seeds = [stream_seed(*each) for each in ((0, 0), (5, 1), (-1, 3), (2**64, 0))]
    assert seeds == [5197578548964807871, 9292961731620677989, 18107108118898898902, 5197578548964807871]
