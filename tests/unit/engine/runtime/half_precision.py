"""The engine in float16 with all of its memory on a device, against float32 on the host."""

from pathlib import Path

import numpy as np

from service.domain.errors import EngineFailure
from service.engine.config import EngineConfig
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.sequence import Sequence
from tests.unit.engine.recorder import decode, new_sequence
from tests.unit.engine.runtime.tiny_graphs import TinyModel
from tests.unit.engine.runtime.tiny_runners import EOS_ID, START_ID, StepByStep

HALF, SINGLE = TinyModel(precision="float16"), TinyModel(precision="float32")
CONFIG = EngineConfig(max_slots=12, max_encode_tokens=120)
TOLERANCE = 0.05  # of a log-probability; float16 has three digits


def check_scores(runner: OnnxRunner, single: Path) -> None:
    """Check that the scores of outputs hold in float32, and that nearly all tokens are the best.

    Rows join, move, are re-laid and, in beams, copied; some fail, and leave NaN in their memory.
    """
    random = np.random.default_rng(7)
    sequences = [
        new_sequence(
            (*random.integers(2, HALF.vocabulary_size, random.integers(0, 39)).tolist(), EOS_ID),
            request_id=str(number),
            beam_size=int(random.choice([1, 1, 2, 4])),
            max_output_tokens=int(random.integers(1, 25)),
            target_prefix_ids=(HALF.nan_id,) if number % 6 == 1 else (),
            length_penalty=0.0,
            return_scores=True,
        )
        for number in range(36)
    ]
    reference, num_greedy, num_best = StepByStep(single, SINGLE), 0, 0
    for update in decode(runner, sequences, CONFIG):
        sequence = update.sequence
        if sequence.target_prefix_ids:
            assert isinstance(update.error, EngineFailure)
            continue
        assert update.error is None, update.error
        chosen, score = _chosen(sequence, update.hypotheses[0].token_ids), update.hypotheses[0].score
        expected = reference.log_probs(sequence.source_ids, [START_ID, *chosen][: len(chosen)])
        total = sum(float(each[token]) for each, token in zip(expected, chosen, strict=True))
        assert abs(total - score) < TOLERANCE * len(chosen), f"{sequence.call.request_id}: {score}, not {total}"
        if sequence.options.beam_size == 1:
            num_greedy += len(chosen)
            num_best += int((expected.argmax(axis=1) == chosen).sum())
    assert num_best > 0.95 * num_greedy > 50


def _chosen(sequence: Sequence, output: tuple[int, ...]) -> list[int]:
    has_ended = len(output) < sequence.options.max_output_tokens
    return [*output, EOS_ID] if has_ended else list(output)
