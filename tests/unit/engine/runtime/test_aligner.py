"""The aligner on tiny graphs: it returns the step graph's own attention, whatever the batch."""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from service.bundle import graph_io
from service.bundle.errors import BundleError
from service.bundle.manifest_parts import Graphs
from service.domain.errors import Unavailable
from service.engine.runtime.aligner import Aligner
from service.engine.runtime.shared_graph import SharedGraph
from tests.patience import patient
from tests.unit.engine.runtime.tiny_runners import (
    MODEL,
    ONE_THREAD,
    PAD_ID,
    START_ID,
    StepByStep,
    manifest,
    write_graphs,
)

ALIGNING = dataclasses.replace(manifest(), graphs=Graphs(alignment="alignment.onnx"))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_graphs(tmp_path_factory.mktemp("aligning"))


def encoder_of(bundle: Path) -> SharedGraph:
    names = graph_io.cross_names(MODEL.num_layers)
    return SharedGraph(bundle / "encoder.onnx", ONE_THREAD, graph_io.encoder_inputs(), names, workers=1)


@pytest.fixture(scope="module")
def aligner(bundle: Path) -> Aligner:
    aligner = Aligner.load(bundle, ALIGNING, encoder_of(bundle), ONE_THREAD)
    assert aligner is not None
    return aligner


def pairs(count: int, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    rng = np.random.default_rng(seed)
    return [
        (rng.integers(3, 40, rng.integers(1, 38)).tolist(), rng.integers(3, 40, rng.integers(1, 24)).tolist())
        for _ in range(count)
    ]


def test_attention_is_that_of_decoding_step_by_step(bundle: Path, aligner: Aligner) -> None:
    reference = StepByStep(bundle)
    for source, target in pairs(5):
        (attention,) = aligner.align([(source, target)])
        assert attention.dtype == np.float32
        assert attention.shape == (len(target), len(source))
        expected = reference.attention(source, [START_ID, *target[:-1]])
        np.testing.assert_allclose(attention, expected, atol=1e-5)
        if len(target) > 1:  # the control: the next token's row differs
            assert np.abs(attention[1:] - expected[:-1]).max() > 1e-2


def test_batches_give_what_one_by_one_gives(aligner: Aligner) -> None:
    """Also with more tokens than fit into one run, in the callers' order."""
    many = pairs(200, seed=1)
    assert sum(max(len(source), len(target)) for source, target in many) > 2 * 1024
    together = aligner.align(many)
    for pair, attention in zip(many, together, strict=True):
        np.testing.assert_allclose(attention, aligner.align([pair])[0], atol=1e-5)
        np.testing.assert_allclose(attention.sum(axis=1), 1.0, atol=1e-5)


def test_empty_translations_and_the_longest_pair(aligner: Aligner) -> None:
    limits = ALIGNING.limits
    longest = [5] * limits.max_source_tokens, [6] * (limits.max_output_tokens + 2)
    assert aligner.align([]) == []
    empty, other, long = aligner.align([([5, 6], []), ([5, 6], [7]), longest])
    assert (empty.shape, other.shape) == ((0, 2), (1, 2))
    assert np.isfinite(long).all()


def test_threads_do_not_disturb_each_other(aligner: Aligner) -> None:
    many = pairs(64, seed=2)
    expected = aligner.align(many)
    start = threading.Barrier(4)

    def align(_: int) -> list[np.ndarray]:
        start.wait(patient(30))
        return list(aligner.align(many))

    with ThreadPoolExecutor(4) as pool:
        for given in pool.map(align, range(4)):
            for one, other in zip(given, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def test_an_engine_that_has_stopped_is_said_to_be_unavailable(bundle: Path) -> None:
    encoder = encoder_of(bundle)
    aligner = Aligner.load(bundle, ALIGNING, encoder, ONE_THREAD)
    assert aligner is not None
    encoder.terminate()
    with pytest.raises(Unavailable, match="has stopped"):
        aligner.align([([5], [6])])


def test_a_bundle_without_the_graph_has_no_aligner_and_one_of_another_layer_is_refused(bundle: Path) -> None:
    assert Aligner.load(bundle, manifest(), encoder_of(bundle), ONE_THREAD) is None
    other = dataclasses.replace(ALIGNING, graphs=Graphs(alignment="alignment.onnx", alignment_layer=1))
    with pytest.raises(BundleError, match="different inputs"):
        Aligner.load(bundle, other, encoder_of(bundle), ONE_THREAD)


def test_padding_is_not_attended_to(aligner: Aligner) -> None:
    """A short source gives the same beside a long one as alone, and the pad id is nothing special."""
    short, long = ([PAD_ID, 9], [11, 12]), (list(range(3, 38)), [11] * 20)
    alone, beside = aligner.align([short])[0], aligner.align([short, long])[0]
    np.testing.assert_allclose(alone, beside, atol=1e-5)
    assert (alone > 0).all()
