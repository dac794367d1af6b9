"""A shipped model: every instruction set and any number of threads give the same bits."""

from pathlib import Path

import pytest

from service.bundle.manifest import Manifest
from tests.kernels.compute import Compute
from tests.kernels.fused_graphs import EOS_ID
from tests.kernels.mixed_batch import decode
from tests.kernels.operators import Operators
from tests.servers import REPOSITORY
from tests.unit.engine.recorder import new_sequence


def test_thirty_sentences_get_the_same_bits(
    kernels_library: Path, computes: list[Compute], monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = REPOSITORY / "models" / "en-de" / "1"
    manifest = Manifest.load(bundle)
    model, graphs, start_id = manifest.model, manifest.graphs, manifest.tokenizer.decoder_start_id
    assert manifest.tokenizer.eos_id == EOS_ID
    sequences = [
        new_sequence(golden.source_ids, max_output_tokens=16, return_scores=True, beam_size=beam_size)
        for golden in manifest.golden[:15]
        for beam_size in (1, 3)
    ]
    answers = []
    for compute, num_threads in [(computes[0], 1), *((each, 2) for each in computes)]:
        monkeypatch.setenv("DRAGOMAN_KERNELS", compute.name)
        operators = Operators(
            kernels_library, bundle / graphs.encoder, bundle / graphs.decoder_step, model, num_slots=60,
            start_id=start_id,
        )  # fmt: skip
        operators.num_threads = num_threads
        answers.append(decode(operators, sequences))
    assert len(answers[0]) == 30
    assert all(other == answers[0] for other in answers)
