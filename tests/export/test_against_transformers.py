"""Our weights in transformers' M2M100: the same logits, the same greedy output and the same beams."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from export.architecture.transformer import Transformer
from export.engine_decode import open_engine
from export.importers.native.importer import import_native
from export.verify import TIE_GAP, first_difference, top_two_gap
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from tests.export.tiny_models import random_sources
from tests.references.m2m100 import generate, logits_along, to_m2m100

MAX_OUTPUT_TOKENS = 40
LENGTHS = [2, 3, 5, 8, 13, 21, 34, 55, 4, 6, 9, 14, 22, 35, 56, 7, 10, 15, 23, 36, 11, 17, 26, 40]


@pytest.fixture(scope="module")
def model(checkpoint: Path) -> Transformer:
    return Transformer.of(import_native(checkpoint).model)


@pytest.fixture(scope="module")
def reference(model: Transformer) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield to_m2m100(model)


@torch.no_grad()
def test_logits_are_equal(model: Transformer, reference: Any) -> None:
    size = model.config.target_vocabulary_size
    for source, output in zip(random_sources(size, LENGTHS), random_sources(size, LENGTHS[::-1], seed=2), strict=True):
        fed = torch.tensor([[model.config.decoder_start_id, *output]])
        ours = model(torch.tensor([source]), fed)[0]
        torch.testing.assert_close(ours, logits_along(reference, source, output), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("length_penalty", [1.0, 0.0])
def test_engine_translates_as_generate(
    exported: tuple[Path, Manifest],
    reference: Any,
    beam_size: int,
    length_penalty: float,
) -> None:
    directory, manifest = exported
    sources = random_sources(manifest.model.vocabulary_size, LENGTHS)
    options = DecodingOptions(
        beam_size=beam_size,
        length_penalty=length_penalty,
        num_hypotheses=min(2, beam_size),
        max_output_tokens=MAX_OUTPUT_TOKENS,
        return_scores=True,
    )
    with open_engine(directory, manifest, max_slots=10) as engine:
        ours = engine.decode([(source, ()) for source in sources], options)
    theirs = generate(reference, sources, options, manifest.suppressed_ids)
    assert len({output.token_ids[0] for output in theirs}) > len(sources) // 3
    num_ties = 0
    for source, given, expected in zip(sources, ours, theirs, strict=True):
        best = expected.token_ids[0]
        if given[0].token_ids != best and beam_size == 1:
            position = first_difference(best, given[0].token_ids)
            logits = logits_along(reference, source, best[:position])[position]
            assert top_two_gap(logits.numpy(), manifest.suppressed_ids) < TIE_GAP, (source, position)
            num_ties += 1
        elif given[0].token_ids != best:
            assert abs(given[0].score - expected.scores[0]) < TIE_GAP, (source, given, expected)
            num_ties += 1
        elif beam_size > 1:
            assert given[0].score == pytest.approx(expected.scores[0], abs=1e-4)
    assert num_ties <= 1
