"""The committed int8 bundles: they equal what `make export` writes, and no row's numbers depend on its neighbours."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from export.engine_decode import decode_golden
from export.graphs.execution import DecodingState, GraphPair
from export.quantize import quantize
from service.bundle import graph_io
from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.runtime.aligner import Aligner
from service.engine.runtime.kernels import KernelsUnavailable, find_kernels
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import SessionConfig
from tests.servers import REPOSITORY

NAMES = sorted(path.name for path in (REPOSITORY / "checkpoints").iterdir())
MAX_SHIPPED_BYTES = 17 * 1024 * 1024
NUM_STEPS = 6


def shipped(name: str) -> Path:
    return REPOSITORY / "models" / name / "1"


def constants(path: Path) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


def test_every_checkpoint_has_its_bundle() -> None:
    assert sorted(path.name for path in (REPOSITORY / "models").iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_its_licence_is_stated(name: str) -> None:
    assert Manifest.load(shipped(name)).licence == "CC-BY-4.0"


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small_enough_to_commit(name: str) -> None:
    assert sum(path.stat().st_size for path in shipped(name).iterdir()) <= MAX_SHIPPED_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_its_golden_outputs_are_those_of_the_kernels(name: str) -> None:
    """They compute the same on every CPU, so what a server says about its self-test is no accident."""
    try:
        find_kernels()
    except KernelsUnavailable as reason:
        pytest.skip(str(reason))
    manifest = Manifest.load(shipped(name))
    assert decode_golden(shipped(name), manifest) == [golden.output_ids for golden in manifest.golden]


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_exporting_again_gives_the_same_weights_and_scales(name: str, tmp_path: Path) -> None:
    """Other processors sum differently in calibration, so the activations' scales may differ slightly."""
    float32 = REPOSITORY / "build" / "float32" / name / "1"
    assert (float32 / "manifest.json").exists(), "run 'make export' first; 'make test' does"
    again = quantize(float32, tmp_path / "1", REPOSITORY / "checkpoints" / name / "sentences.tsv")
    manifest = Manifest.load(shipped(name))
    assert again.quality["bleu"] == pytest.approx(manifest.quality["bleu"], abs=0.5)
    assert again.graphs == manifest.graphs
    for file in manifest.graphs.plain:
        expected, given = constants(shipped(name) / file), constants(tmp_path / "1" / file)
        assert expected.keys() == given.keys()
        for key, value in expected.items():
            if value.dtype == np.int8:
                assert np.array_equal(value, given[key]), key
            else:
                np.testing.assert_allclose(given[key], value, rtol=0.1, atol=2, err_msg=key)


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest) -> GraphPair:
    bundle = shipped(request.param)
    manifest = Manifest.load(bundle)
    return GraphPair(
        bundle / manifest.graphs.encoder, bundle / manifest.graphs.decoder_step, manifest.model, num_threads=2
    )


def draw(rng: np.random.Generator, length: int) -> tuple[int, ...]:
    return (*rng.integers(40, 4600, length - 1).tolist(), 2)  # within every shipped vocabulary


def bucketed(state: DecodingState, width: int) -> DecodingState:
    """Return the same sources in another of the service's bucket widths, padded with zeros."""
    for name, value in state.cross.items():
        room = width - value.shape[2]
        state.cross[name] = np.pad(
            value[:, :, : min(width, value.shape[2])], ((0, 0), (0, 0), (0, max(room, 0)), (0, 0))
        )
    return state


@pytest.mark.parametrize("seed", range(4))
def test_encoding_does_not_depend_on_neighbours_or_padding(pair: GraphPair, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = graph_io.cross_names(pair.shape.num_decoder_layers)
    sources = [draw(rng, int(length)) for length in (1, 2, 3, *rng.integers(4, 60, 8))]
    together = pair.fetch_encoded(sources, 1, names)
    for row, source in enumerate(sources):
        for alone, padded in zip(pair.fetch_encoded([source], 1, names), together, strict=True):
            assert np.array_equal(alone[0], padded[row, :, : len(source)])


@pytest.mark.parametrize(("num_rows", "width"), [(1, 32), (1, 128), (2, 64), (7, 32), (32, 48), (33, 96)])
def test_log_probs_do_not_depend_on_batch_row_or_bucket(pair: GraphPair, num_rows: int, width: int) -> None:
    """Bitwise, over the whole vocabulary, at every step."""
    rng = np.random.default_rng(num_rows)
    sources = [draw(rng, int(length)) for length in rng.integers(2, 30, num_rows)]
    tokens = rng.integers(40, 4600, (NUM_STEPS, num_rows))
    together = bucketed(pair.start(sources, 1, NUM_STEPS), width)
    batched = [together.candidates(tokens[step], pair.shape.vocabulary_size) for step in range(NUM_STEPS)]
    for row in {0, num_rows // 2, num_rows - 1}:
        narrowest = -(-len(sources[row]) // 8) * 8
        alone = bucketed(pair.start([sources[row]], 1, NUM_STEPS), narrowest)
        for step in range(NUM_STEPS):
            ids, log_probs = alone.candidates(tokens[step][row : row + 1], pair.shape.vocabulary_size)
            assert np.array_equal(ids[0], batched[step][0][row])
            assert np.array_equal(log_probs[0], batched[step][1][row])


@pytest.mark.parametrize("seed", range(2))
def test_alignments_do_not_depend_on_neighbours_or_padding(seed: int) -> None:
    """Bitwise, in the way the service runs them."""
    manifest, rng = Manifest.load(shipped("en-de")), np.random.default_rng(seed)
    config = SessionConfig(intra_op_threads=2)
    (runner,) = OnnxRunner.load_for_workers(shipped("en-de"), manifest, EngineConfig(max_slots=1), config)
    aligner = Aligner.load(shipped("en-de"), manifest, runner.encoder, config)
    assert aligner is not None
    pairs = [(draw(rng, int(length)), draw(rng, int(rng.integers(2, 60)))) for length in rng.integers(2, 60, 40)]
    for pair, attention in zip(pairs, aligner.align(pairs), strict=True):
        assert np.array_equal(attention, aligner.align([pair])[0])


def test_alignments_find_names_numbers_and_symbols() -> None:
    """More than four of five source pieces copied to the translation align with their copies, in int8 as in float32."""
    said = Manifest.load(shipped("en-de")).quality
    assert said["alignment"] > 0.8
    assert said["alignment"] == pytest.approx(said["alignment_float32"], abs=0.02)
