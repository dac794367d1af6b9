"""The aligner on tiny graphs: it returns the step graph's own attention, whatever the batch."""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from service.bundle import graph_io
from service.bundle.errors import BundleError
from service.bundle.manifest_parts import Graphs
from service.domain.errors import Unavailable
from service.engine.runtime.aligner import Aligner
from service.engine.runtime.session import SessionConfig
from service.engine.runtime.shared_graph import SharedGraph
from tests.patience import patient
from tests.unit.engine.runtime.test_onnx_runner import MODEL, PAD_ID, START_ID, manifest
from tests.unit.engine.runtime.tiny_graphs import save_alignment, save_decoder_step, save_encoder

ALIGNING = dataclasses.replace(manifest(), graphs=Graphs(alignment="alignment.onnx"))
ONE_THREAD = SessionConfig(intra_op_threads=1)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("aligning")
    save_encoder(MODEL, directory / "encoder.onnx")
    save_decoder_step(MODEL, directory / "decoder_step.onnx")
    save_alignment(MODEL, directory / "alignment.onnx", START_ID)
    return directory


@pytest.fixture(scope="module")
def encoder(bundle: Path) -> SharedGraph:
    names = graph_io.cross_names(MODEL.num_layers)
    return SharedGraph(bundle / "encoder.onnx", ONE_THREAD, graph_io.encoder_inputs(), names, workers=1)


@pytest.fixture(scope="module")
def aligner(bundle: Path, encoder: SharedGraph) -> Aligner:
    aligner = Aligner.load(bundle, ALIGNING, encoder, ONE_THREAD)
    assert aligner is not None
    return aligner


def pairs(count: int, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    rng = np.random.default_rng(seed)
    return [
        (rng.integers(3, 40, rng.integers(1, 38)).tolist(), rng.integers(3, 40, rng.integers(1, 24)).tolist())
        for _ in range(count)
    ]


def cross_attention_of_steps(bundle: Path, source: list[int], target: list[int]) -> np.ndarray:
    """Compute (T, S) token by token: the step graph's query of layer 0, exposed, against the encoder's keys."""
    model = onnx.load(bundle / "decoder_step.onnx")
    first = next(node for node in model.graph.node if node.op_type == "MultiHeadAttention")
    model.graph.output.append(onnx.helper.make_tensor_value_info(first.input[0], onnx.TensorProto.FLOAT, None))
    step = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    encode = ort.InferenceSession(bundle / "encoder.onnx", providers=["CPUExecutionProvider"])
    names = graph_io.cross_names(MODEL.num_layers)
    lengths = np.array([len(source)], np.int32)
    cross = encode.run(names, {graph_io.SOURCE_IDS: np.array([source]), graph_io.SOURCE_LENGTHS: lengths})
    past_names = graph_io.past_names(MODEL.num_layers)
    past = [np.zeros((1, MODEL.num_heads, 32, MODEL.head_size), np.float32) for _ in past_names]
    rows = []
    for position, token in enumerate([START_ID, *target[:-1]]):
        inputs = {
            graph_io.TOKEN_IDS: np.array([token]),
            graph_io.LENGTHS: np.array([position], np.int32),
            graph_io.TOTAL_LENGTH: np.array([position + 1], np.int32),
            graph_io.SOURCE_LENGTHS: lengths,
            graph_io.NUM_CANDIDATES: np.array([1]),
            **dict(zip(past_names, past, strict=True)),
            **dict(zip(names, cross, strict=True)),
        }
        query, *past = step.run([first.input[0], *graph_io.present_names(MODEL.num_layers)], inputs)
        heads = query.reshape(MODEL.num_heads, 1, MODEL.head_size)
        scores = (heads @ cross[0][0].transpose(0, 2, 1))[:, 0] / np.sqrt(MODEL.head_size)  # (H, S)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        rows.append((shares / shares.sum(axis=1, keepdims=True)).mean(axis=0))
    return np.stack(rows)


def test_attention_is_that_of_decoding_step_by_step(bundle: Path, aligner: Aligner) -> None:
    for source, target in pairs(5):
        (attention,) = aligner.align([(source, target)])
        assert attention.dtype == np.float32
        assert attention.shape == (len(target), len(source))
        expected = cross_attention_of_steps(bundle, source, target)
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


def test_empty_translations_and_empty_calls(aligner: Aligner) -> None:
    assert aligner.align([]) == []
    empty, other = aligner.align([([5, 6], []), ([5, 6], [7])])
    assert empty.shape == (0, 2)
    assert other.shape == (1, 2)


def test_the_longest_pair_fits(aligner: Aligner) -> None:
    limits = ALIGNING.limits
    source, target = [5] * limits.max_source_tokens, [6] * (limits.max_output_tokens + 2)
    (attention,) = aligner.align([(source, target)])
    assert np.isfinite(attention).all()


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
    names = graph_io.cross_names(MODEL.num_layers)
    encoder = SharedGraph(bundle / "encoder.onnx", ONE_THREAD, graph_io.encoder_inputs(), names, workers=1)
    aligner = Aligner.load(bundle, ALIGNING, encoder, ONE_THREAD)
    assert aligner is not None
    encoder.terminate()
    with pytest.raises(Unavailable, match="has stopped"):
        aligner.align([([5], [6])])


def test_a_bundle_without_the_graph_has_no_aligner(bundle: Path, encoder: SharedGraph) -> None:
    assert Aligner.load(bundle, manifest(), encoder, ONE_THREAD) is None


def test_a_graph_of_another_layer_is_refused(bundle: Path, encoder: SharedGraph) -> None:
    other = dataclasses.replace(ALIGNING, graphs=Graphs(alignment="alignment.onnx", alignment_layer=1))
    with pytest.raises(BundleError, match="other inputs"):
        Aligner.load(bundle, other, encoder, ONE_THREAD)


def test_padding_is_not_attended_to(aligner: Aligner) -> None:
    """A short source gives the same beside a long one as alone, and the pad id is nothing special."""
    short, long = ([PAD_ID, 9], [11, 12]), (list(range(3, 38)), [11] * 20)
    alone, beside = aligner.align([short])[0], aligner.align([short, long])[0]
    np.testing.assert_allclose(alone, beside, atol=1e-5)
    assert (alone > 0).all()
