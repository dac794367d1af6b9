"""`Encode` against what it means in NumPy; the same bits however sources are packed, shared out or computed."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.compute import Compute
from tests.kernels.fused_graphs import SHAPES, Shape, decode_graph, encode_graph
from tests.kernels.operators import Operators
from tests.references.bfloat16 import NAN, Bits
from tests.references.fused_model import FusedEncoder
from tests.unit.engine.reference_search import most_repeats


@pytest.fixture(scope="module")
def caches(operators: Operators, sources: list[tuple[int, ...]]) -> Bits:
    """Each source encoded by itself, in the row of its number; elsewhere, NaN."""
    for slot, source in enumerate(sources):
        assert operators.encode([source], [slot]) == ([1], [most_repeats(source)])
    return operators.cross_cache.copy()


def test_it_is_what_the_reference_says(
    operators: Operators, caches: Bits, sources: list[tuple[int, ...]], shape: Shape, folder: Path
) -> None:
    """But for values that lie so close to the middle between two levels that each side rounds its own way."""
    reference = FusedEncoder(folder / "encoder.onnx")
    operators.cross_cache[...] = caches
    errors = []
    for slot, source in enumerate(sources):
        for layer, expected in enumerate(reference.encode(source)):
            given = operators.cached(slot, layer, len(source), shape.head_size)
            for own, other in zip(given, expected, strict=True):
                assert other.std() > 0.1
                errors.append(np.abs(own - other).max() / other.std())
    assert np.median(errors) < 2e-5
    assert max(errors) < 0.5


def test_what_is_beyond_a_source_stays_as_it_was(caches: Bits, sources: list[tuple[int, ...]]) -> None:
    for slot, source in enumerate(sources):
        num_blocks = -(-len(source) // 16)
        assert (caches[slot, :, num_blocks:] == NAN).all()
    assert (caches[len(sources) :] == NAN).all()


@pytest.mark.parametrize("num_threads", [1, 2, 4])
def test_packing_and_threads_change_no_bit(
    operators: Operators, caches: Bits, sources: list[tuple[int, ...]], num_threads: int
) -> None:
    rng = np.random.default_rng(num_threads)
    operators.num_threads = num_threads
    for _ in range(3):
        operators.cross_cache[...] = NAN
        order = rng.permutation(len(sources)).tolist()
        is_finite, repeats = operators.encode([sources[place] for place in order], order)
        assert is_finite == [1] * len(sources)
        assert repeats == [most_repeats(sources[place]) for place in order]
        np.testing.assert_array_equal(operators.cross_cache, caches)
    count = len(sources)
    operators.encode(sources * 2, range(2 * count))  # some at a time
    for copy in (operators.cross_cache[:count], operators.cross_cache[count : 2 * count]):
        np.testing.assert_array_equal(copy, caches[:count])
    operators.num_threads = 1


def test_instruction_sets_change_no_bit(
    kernels_library: Path, computes: list[Compute], tmp_path: Path, shape: Shape, caches: Bits,
    sources: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for compute in computes:
        monkeypatch.setenv("DRAGOMAN_KERNELS", compute.name)
        operators = Operators.tiny(kernels_library, tmp_path / compute.name, shape)
        operators.encode(sources, range(len(sources)))
        np.testing.assert_array_equal(operators.cross_cache, caches, err_msg=compute.name)


def test_many_short_sources_share_a_run(kernels_library: Path, tmp_path: Path) -> None:
    """More of them than a team's phase has chunks."""
    shape, count = SHAPES["narrow"], 70_000
    operators = Operators.tiny(kernels_library, tmp_path, shape, num_slots=2)
    operators.num_threads = 3
    is_finite, repeats = operators.encode([(4,)] * count, [0] * (count - 1) + [1])
    assert (is_finite, repeats) == ([1] * count, [1] * count)
    np.testing.assert_array_equal(operators.cross_cache[0], operators.cross_cache[1])


def test_a_source_that_becomes_infinite_is_reported(kernels_library: Path, tmp_path: Path) -> None:
    shape = SHAPES["post-norm"]
    encoder = encode_graph(shape)
    encoder.constants[0][7] = 3e38  # the scale of token 7
    operators = Operators.of(kernels_library, tmp_path, encoder, decode_graph(shape))
    assert operators.encode([(5, 6), (8, 9)], [0, 1])[0] == [1, 1]
    alone = operators.cross_cache.copy()
    assert operators.encode([(5, 6), (4, 7, 6), (8, 9)], [0, 2, 1])[0] == [1, 0, 1]
    np.testing.assert_array_equal(operators.cross_cache[:2], alone[:2])
