"""Shortlists in plain graphs: the encoder's masks, and steps that choose among what they allow."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from export.graphs.checks import GraphError
from export.graphs.execution import GraphPair
from export.graphs.listing import list_graphs
from export.graphs.tracing import trace_decoder_step, trace_encoder
from export.graphs.weights_file import WeightsFile
from export.shortlist import Shortlist
from service.bundle import graph_io
from tests.export.tiny_models import random_sources, tiny_config, tiny_model
from tests.export.variants import ALIGNMENTS, LENGTHS, SHORTLISTS, SUPPRESSED, VARIANTS, Variant
from tests.references.shortlists import allowed_tokens


def shortlist(always: list[int], num_lists: int, longest: int) -> Shortlist:
    rng = np.random.default_rng(len(always))
    lengths = rng.integers(0, longest + 1, num_lists)
    ids = rng.integers(0, 90, lengths.sum()).astype(np.int32)
    return Shortlist(np.array(always, np.int64), np.cumsum([0, *lengths]), ids)


def listed(variant: Variant, made: Shortlist, directory: Path, *, shares: bool = False) -> GraphPair:
    """Return a copy of a variant's graphs with a shortlist."""
    shutil.copytree(variant.folder, directory, dirs_exist_ok=True)
    manifest = variant.manifest
    model = dataclasses.replace(manifest.model, shortlist_size=90)
    architecture = manifest.architecture | {"share_embeddings": shares}
    precision = str(variant.model.projection.weight.dtype).removeprefix("torch.")
    manifest = dataclasses.replace(manifest, model=model, architecture=architecture, precision=precision)
    with WeightsFile(directory, appends=True) as file:
        list_graphs(directory, manifest, made, file)
    return GraphPair(directory / "encoder.onnx", directory / "decoder_step.onnx", model, num_threads=1)


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize(
    "made",
    [
        shortlist([0, 1, 2, 3, 4, 5], 70, longest=7),
        shortlist([2, 50], 70, longest=0),  # nothing but what is always allowed
        shortlist([*range(1, 88)], 70, longest=3),  # not enough tokens for a multiple of 8
        shortlist([], 70, longest=2),
        shortlist([2], 65, longest=3),  # the last tokens have no lists
    ],
    ids=["first ones", "empty lists", "nearly all", "none always", "some without"],
)
def test_masks_are_what_the_lists_mean(
    variants: Callable[[str], Variant], tmp_path: Path, made: Shortlist, *, shares: bool
) -> None:
    """Of sources alone, and of those of other lengths together."""
    pair = listed(variants("plain"), made, tmp_path, shares=shares)
    sources = random_sources(70, [*LENGTHS, 1, 1])
    batches = [[source] for source in sources], [sources]
    alone, together = (
        np.concatenate([mask for each in batch for mask in pair.fetch_encoded(each, 1, [graph_io.LISTED])])
        for batch in batches
    )
    for source, *masks in zip(sources, alone, together, strict=True):
        expected = allowed_tokens(made.always, made.offsets, made.ids, source, 90, has_one_vocabulary=shares)
        for mask in masks:
            np.testing.assert_array_equal(mask[:90], expected)


def test_in_half_precision_the_same_tokens_are_allowed(tmp_path: Path) -> None:
    model = tiny_model(tiny_config(**VARIANTS["recurrent"])).half()
    with WeightsFile(tmp_path) as file:
        trace_encoder(model, tmp_path / "encoder.onnx", file)
        trace_decoder_step(model, SUPPRESSED, tmp_path / "decoder_step.onnx", file)
    variant, made = Variant(model, ALIGNMENTS["recurrent"], None, tmp_path), SHORTLISTS["recurrent"]
    sources = random_sources(70, LENGTHS)
    state = listed(variant, made, tmp_path / "listed").start(sources, pad_id=1, capacity=1)
    ids, log_probs = state.candidates(np.full(len(sources), model.config.decoder_start_id), 90)
    for source, own_ids, own_log_probs in zip(sources, ids, log_probs, strict=True):
        allowed = allowed_tokens(made.always, made.offsets, made.ids, source, 90, has_one_vocabulary=False)
        allowed[list(SUPPRESSED)] = False
        assert sorted(own_ids[np.isfinite(own_log_probs)]) == np.flatnonzero(allowed).tolist()


def test_graphs_of_other_versions_are_refused(variants: Callable[[str], Variant], tmp_path: Path) -> None:
    path = Path(shutil.copytree(variants("plain").folder, tmp_path / "old")) / "decoder_step.onnx"
    path.write_bytes(path.read_bytes().replace(b"projection.suppressed_weight", b"another.name.of.these.weight"))
    old = variants("plain")._replace(folder=path.parent)
    with pytest.raises(GraphError, match="its scores are not where they are expected; convert the checkpoint again"):
        listed(old, SHORTLISTS["recurrent"], tmp_path / "listed")
