"""Runners of the tiny graphs, in every way that they are loaded, and the same graphs run by themselves."""

from collections.abc import Iterator
from collections.abc import Sequence as Sequence_
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy import typing as npt

from service.bundle import graph_io
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair, Limits, ModelShape, TokenizerSpec
from service.engine.batch import Batch
from service.engine.config import EngineConfig
from service.engine.runner import EncodeJob, RunLimits
from service.engine.runtime import onnx_runner
from service.engine.runtime.device_cache import DeviceCache
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import SessionConfig
from service.engine.runtime.step_search import StepInputs
from service.engine.sequence import Sequence
from tests.unit.engine.runtime.tiny_graphs import TinyModel, save_alignment, save_decoder_step, save_encoder

PAD_ID, EOS_ID, START_ID = 0, 1, 0
MODEL = TinyModel()
ONE_THREAD = SessionConfig(intra_op_threads=1)


def write_graphs(directory: Path, model: TinyModel = MODEL) -> Path:
    """Write all graphs of a model."""
    directory.mkdir(exist_ok=True)
    save_encoder(model, directory / "encoder.onnx")
    save_decoder_step(model, directory / "decoder_step.onnx")
    save_alignment(model, directory / "alignment.onnx", START_ID)
    return directory


def manifest(model: TinyModel = MODEL) -> Manifest:
    """Return the manifest of these graphs."""
    return Manifest(
        name="tiny",
        model=ModelShape(model.num_layers, model.num_heads, model.head_size, model.vocabulary_size),
        tokenizer=TokenizerSpec("none", "none", PAD_ID, EOS_ID, unk_id=2, decoder_start_id=START_ID),
        languages=(LanguagePair("en", "de", target_prefix_ids=(4, 5)),),
        limits=Limits(max_source_tokens=40, max_output_tokens=24),
        golden=(),
        checksums={},
        checkpoint_sha256="",
        precision=model.precision,
    )


def load_on_host(bundle: Path, config: EngineConfig) -> OnnxRunner:
    """Load a runner of one thread."""
    return OnnxRunner.load(bundle, manifest(), config, ONE_THREAD)


def load_sharded(bundle: Path, config: EngineConfig) -> OnnxRunner:
    """Load a runner that splits rows among threads as soon as there are six."""
    return OnnxRunner.load(bundle, manifest(), config, SessionConfig(intra_op_threads=3))


def load_on_device(bundle: Path, config: EngineConfig, model: TinyModel = MODEL) -> OnnxRunner:
    """Load a runner as on a GPU, with all memory on a device; the device is the CPU here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_runner, "HostCache", lambda shape: DeviceCache(shape, ONE_THREAD))
        patch.setattr(onnx_runner, "StepInputs", lambda max_slots, device: StepInputs(max_slots, "cpu"))
        return OnnxRunner.load(bundle, manifest(model), config, ONE_THREAD)


class Rows:
    """A runner's rows without an engine."""

    def __init__(self, runner: OnnxRunner) -> None:
        self.runner = runner
        self.batch = Batch(runner.spec.max_slots, runner.spec.kv_capacity)
        runner.attach(self.batch.state)

    def join(self, *sequences: Sequence) -> None:
        """Let sequences join that are encoded in one run."""
        assert all(
            self.runner.encode([EncodeJob(each.source_ids, self.batch.join(each, START_ID)) for each in sequences])
        )

    def leave(self, sequence: Sequence) -> None:
        """Let a sequence leave, and others move to its rows."""
        for move in self.batch.leave(sequence):
            self.runner.move(*move)

    def scores(self, num_steps: int = 1) -> npt.NDArray[np.float32]:
        """Make steps; return the sums of log-probabilities (n,)."""
        self.runner.search(self.batch.num_rows, RunLimits(num_steps))
        return self.batch.log_probs[: self.batch.num_rows].copy()


class StepByStep:
    """Graphs run for one sequence, token by token: no batch, nothing bound."""

    def __init__(self, bundle: Path, model: TinyModel = MODEL) -> None:
        self._model = model
        providers = ["CPUExecutionProvider"]
        self._encoder = ort.InferenceSession(bundle / "encoder.onnx", providers=providers)
        graph = onnx.load(bundle / "decoder_step.onnx")
        first = next(node for node in graph.graph.node if node.op_type == "MultiHeadAttention")
        self._query = first.input[0]  # of the first layer's cross-attention, exposed
        graph.graph.output.append(onnx.helper.make_tensor_value_info(self._query, onnx.TensorProto.FLOAT, None))
        self._step = ort.InferenceSession(graph.SerializeToString(), providers=providers)

    def log_probs(self, source_ids: Sequence_[int], inputs: Sequence_[int]) -> npt.NDArray[np.float32]:
        """Return log-probabilities after each input, (n, V)."""
        ranked = np.empty((len(inputs), self._model.vocabulary_size), np.float32)
        names = [graph_io.CANDIDATE_IDS, graph_io.CANDIDATE_LOG_PROBS]
        for row, (ids, values) in zip(ranked, self._outputs(source_ids, inputs, names), strict=True):
            row[ids[0]] = values[0]
        return ranked

    def attention(self, source_ids: Sequence_[int], inputs: Sequence_[int]) -> npt.NDArray[np.float32]:
        """Return (n, S), the mean of the heads of the first layer."""
        keys, size = self._cross(source_ids)[0][0], self._model.head_size
        rows = []
        for (query,) in self._outputs(source_ids, inputs, [self._query]):
            scores = (query.reshape(-1, 1, size) @ keys.transpose(0, 2, 1))[:, 0] / np.sqrt(size)  # (H, S)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            rows.append((shares / shares.sum(axis=1, keepdims=True)).mean(axis=0))
        return np.stack(rows)

    def _cross(self, source_ids: Sequence_[int]) -> list[npt.NDArray[Any]]:
        feed = {graph_io.SOURCE_IDS: np.array([source_ids]), graph_io.SOURCE_LENGTHS: _one(len(source_ids))}
        cross: list[npt.NDArray[Any]] = self._encoder.run(graph_io.cross_names(self._model.num_layers), feed)
        return cross

    def _outputs(
        self, source_ids: Sequence_[int], inputs: Sequence_[int], names: list[str]
    ) -> Iterator[list[npt.NDArray[Any]]]:
        model = self._model
        past_names, present_names = graph_io.past_names(model.num_layers), graph_io.present_names(model.num_layers)
        cross = dict(zip(graph_io.cross_names(model.num_layers), self._cross(source_ids), strict=True))
        shape = (1, model.num_heads, len(inputs), model.head_size)
        past: list[npt.NDArray[Any]] = [np.zeros(shape, model.dtype) for _ in past_names]
        for position, token_id in enumerate(inputs):
            feed = {
                graph_io.TOKEN_IDS: np.array([token_id]),
                graph_io.LENGTHS: _one(position),
                graph_io.TOTAL_LENGTH: _one(position + 1),
                graph_io.SOURCE_LENGTHS: _one(len(source_ids)),
                graph_io.NUM_CANDIDATES: np.array([model.vocabulary_size]),
                **dict(zip(past_names, past, strict=True)),
            }
            found = self._step.run([*names, *present_names], feed | cross)
            past = found[len(names) :]
            yield found[: len(names)]


def _one(number: int) -> npt.NDArray[np.int32]:
    return np.array([number], np.int32)
