"""Checks of the runner in float16 with all of its memory on a device, against float32 on the host.

The device is the CPU in the unit tests, where ONNX Runtime casts what it has no kernel for, and CUDA in `tests/gpu`.
"""

from collections.abc import Sequence as Sequence_
from pathlib import Path

import numpy as np
from numpy import typing as npt

from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair, Limits, ModelShape, TokenizerSpec
from service.engine.config import EngineConfig
from service.engine.runner import EncodeJob
from service.engine.runtime.device_cache import DeviceCache
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import SessionConfig
from service.engine.runtime.step_inputs import StepInputs
from service.engine.runtime.step_search import Need, StepSearch
from service.engine.sequence import Sequence
from tests.unit.engine.recorder import decode, new_sequence
from tests.unit.engine.runtime.device_access import get, put
from tests.unit.engine.runtime.steps import attached, step
from tests.unit.engine.runtime.tiny_graphs import TinyModel, save_decoder_step, save_encoder

PAD_ID, EOS_ID, START_ID = 0, 1, 0
HALF = TinyModel(precision="float16")
SINGLE = TinyModel(precision="float32")
VOCABULARY = HALF.vocabulary_size
EVERYTHING = Need(VOCABULARY, 1, 0, 0)
TOLERANCE = 0.05  # of a log-probability; float16 has three digits

LogProbs = npt.NDArray[np.float32]


def write_bundle(directory: Path, model: TinyModel) -> Path:
    directory.mkdir()
    save_encoder(model, directory / "encoder.onnx")
    save_decoder_step(model, directory / "decoder_step.onnx")
    return directory


def load(directory: Path, model: TinyModel, config: EngineConfig, session_config: SessionConfig) -> OnnxRunner:
    manifest = Manifest(
        name="tiny",
        model=ModelShape(model.num_layers, model.num_heads, model.head_size, model.vocabulary_size),
        tokenizer=TokenizerSpec("none", "none", PAD_ID, EOS_ID, unk_id=2, decoder_start_id=START_ID),
        languages=(LanguagePair("en", "de"),),
        limits=Limits(max_source_tokens=40, max_output_tokens=24),
        golden=(),
        checksums={},
        checkpoint_sha256="",
        precision=model.precision,
    )
    return attached(OnnxRunner.load(directory, manifest, config, session_config))


class Pair:
    """The model in float16 with its memory on a device, and in float32 on the host."""

    def __init__(self, directory: Path, session_config: SessionConfig, max_slots: int) -> None:
        self.config = EngineConfig(max_slots=max_slots, max_encode_tokens=120)
        self.half = load(write_bundle(directory / "half", HALF), HALF, self.config, session_config)
        if session_config.device == "cpu":
            self.half._cache = DeviceCache(self.half._cache.shape, session_config)
            self.half._inputs = StepInputs(max_slots, "cpu")
            self.half._search = StepSearch(self.half.spec, VOCABULARY, self.half._inputs)
            attached(self.half)
        assert isinstance(self.half._cache, DeviceCache)
        assert self.half._cache.shape.dtype == np.float16
        host = SessionConfig("cpu", intra_op_threads=1)
        self.single = load(write_bundle(directory / "single", SINGLE), SINGLE, EngineConfig(max_slots=1), host)

    def expected(self, source: Sequence_[int], inputs: Sequence_[int]) -> list[LogProbs]:
        """Return log-probabilities (V,) after each input, in float32, with the source alone."""
        self.single.reset()
        self.single.encode([EncodeJob(source, [0])])
        return [log_probs(self.single, [token], [position], [len(source)])[0] for position, token in enumerate(inputs)]


def log_probs(
    runner: OnnxRunner, tokens: Sequence_[int], lengths: Sequence_[int], source_lengths: Sequence_[int]
) -> LogProbs:
    """Run one step; return (n, V) by token id."""
    output = step(runner, tokens, lengths, source_lengths, EVERYTHING)
    np.testing.assert_array_equal(output.next_ids, output.candidate_ids[:, 0])
    by_id = np.empty_like(output.candidate_log_probs)
    np.put_along_axis(by_id, output.candidate_ids, output.candidate_log_probs, axis=1)
    assert by_id.dtype == np.float32
    return by_id


def check_rows_through_joins_moves_and_copies(pair: Pair) -> None:
    """Check that rows of different lengths, re-laid, moved and copied, continue as if each were alone."""
    runner, first, second, third = pair.half, (5, 9, 13, 1), (3,) * 6 + (1,), (7,) * 33 + (1,)
    runner.reset()
    assert runner.encode([EncodeJob(second, [0]), EncodeJob(first, [1, 2])]) == [True, True]
    at_start = log_probs(runner, [0, 0, 0], [0, 0, 0], [7, 4, 4])
    np.testing.assert_allclose(at_start[1], pair.expected(first, [0])[0], atol=TOLERANCE)
    later = log_probs(runner, [4, 7, 8], [1, 1, 1], [7, 4, 4])
    np.testing.assert_allclose(later[2], pair.expected(first, [0, 8])[1], atol=TOLERANCE)
    runner._cache.reorder([2], [1], [2])  # the second beam continues from the third: 0, 8
    assert runner.encode([EncodeJob(third, [3])]) == [True]  # a longer bucket for all
    beams = log_probs(runner, [4, 6, 9, 0], [2, 2, 2, 0], [7, 4, 4, 34])
    np.testing.assert_allclose(beams[0], pair.expected(second, [0, 4, 4])[2], atol=TOLERANCE)
    np.testing.assert_allclose(beams[1], pair.expected(first, [0, 8, 6])[2], atol=TOLERANCE)
    np.testing.assert_allclose(beams[2], pair.expected(first, [0, 8, 9])[2], atol=TOLERANCE)
    np.testing.assert_allclose(beams[3], pair.expected(third, [0])[0], atol=TOLERANCE)
    runner.move(3, 0, 1)  # the first sequence left
    moved = log_probs(runner, [5, 2, 2], [1, 3, 3], [34, 4, 4])
    np.testing.assert_allclose(moved[0], pair.expected(third, [0, 5])[1], atol=TOLERANCE)
    np.testing.assert_allclose(moved[1], pair.expected(first, [0, 8, 6, 2])[3], atol=TOLERANCE)
    assert np.abs(moved[0] - moved[1]).max() > 10 * TOLERANCE, "rows that are all alike would prove nothing"


def check_a_failed_rows_leavings_do_not_reach_its_next_owner(pair: Pair) -> None:
    runner = pair.half
    runner.reset()
    runner.encode([EncodeJob((5,) * 30, [0])])
    for buffer in (*runner._cache.past(1), *runner._cache.cross(1)):
        contents = get(buffer)
        contents[:] = np.nan
        put(buffer, contents)
    output = step(runner, [0], [3], [30], EVERYTHING)
    assert np.isnan(output.candidate_log_probs).all(), "a positive control"
    runner.clear([0])
    runner.encode([EncodeJob((5, 1), [0])])
    clean = log_probs(runner, [0], [0], [2])[0]
    np.testing.assert_allclose(clean, pair.expected((5, 1), [0])[0], atol=TOLERANCE)


def check_the_engines_scores(pair: Pair) -> None:
    """Check that the scores of the engine's outputs hold in float32, and that nearly all tokens are the best."""
    random = np.random.default_rng(7)
    sequences = [
        new_sequence(
            (*random.integers(2, VOCABULARY, random.integers(0, 39)).tolist(), EOS_ID),
            request_id=str(number),
            beam_size=int(random.choice([1, 1, 2, 4])),
            max_output_tokens=int(random.integers(1, 25)),
            length_penalty=0.0,
            return_scores=True,
        )
        for number in range(24)
    ]
    num_greedy = num_best = 0
    for sequence, output, score in _decode(pair, sequences):
        has_ended = len(output) < sequence.options.max_output_tokens
        chosen = [*output, EOS_ID] if has_ended else list(output)
        expected = pair.expected(sequence.source_ids, [START_ID, *output][: len(chosen)])
        total = sum(float(each[token]) for each, token in zip(expected, chosen, strict=True))
        assert abs(total - score) < TOLERANCE * len(chosen), f"{sequence.call.request_id}: {score}, not {total}"
        if sequence.options.beam_size == 1:
            num_greedy += len(chosen)
            num_best += sum(int(each.argmax()) == token for each, token in zip(expected, chosen, strict=True))
    assert num_best > 0.95 * num_greedy > 50


def _decode(pair: Pair, sequences: list[Sequence]) -> list[tuple[Sequence, tuple[int, ...], float]]:
    decoded = []
    for sequence, update in zip(sequences, decode(pair.half, sequences, pair.config), strict=True):
        assert update.error is None, update.error
        best = update.hypotheses[0]
        assert best.score is not None
        decoded.append((sequence, best.token_ids, best.score))
    return decoded
