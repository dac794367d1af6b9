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
from export.graphs.weights_file import WeightsFile
from export.shortlist import Shortlist
from service.bundle import graph_io
from service.bundle.manifest import Manifest
from tests.export.conftest import Converted
from tests.export.tiny_models import random_sources
from tests.export.variants import LENGTHS, SHORTLISTS, Variant
from tests.references.shortlists import allowed_tokens


def shortlist(always: list[int], num_lists: int, longest: int) -> Shortlist:
    rng = np.random.default_rng(len(always))
    lengths = rng.integers(0, longest + 1, num_lists)
    ids = rng.integers(0, 90, lengths.sum()).astype(np.int32)
    return Shortlist(np.array(always, np.int64), np.cumsum([0, *lengths]), ids)


def listed(folder: Path, manifest: Manifest, made: Shortlist, directory: Path) -> GraphPair:
    """Return a copy of a folder's graphs with a shortlist."""
    shutil.copytree(folder, directory, dirs_exist_ok=True)
    model = dataclasses.replace(manifest.model, shortlist_size=manifest.model.vocabulary_size)
    manifest = dataclasses.replace(manifest, model=model)
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
    variant = variants("plain")
    architecture = variant.manifest.architecture | {"share_embeddings": shares}
    pair = listed(variant.folder, dataclasses.replace(variant.manifest, architecture=architecture), made, tmp_path)
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


def test_in_half_precision_the_same_tokens_are_allowed(conversions: Callable[[str], Converted], tmp_path: Path) -> None:
    (_, bundle, manifest), made = conversions("halves"), SHORTLISTS["recurrent"]
    size, start_id = manifest.model.vocabulary_size, manifest.tokenizer.decoder_start_id
    sources = random_sources(70, LENGTHS)
    state = listed(bundle, manifest, made, tmp_path).start(sources, pad_id=1, capacity=1)
    ids, log_probs = state.candidates(np.full(len(sources), start_id), size)
    for source, own_ids, own_log_probs in zip(sources, ids, log_probs, strict=True):
        allowed = allowed_tokens(made.always, made.offsets, made.ids, source, size, has_one_vocabulary=True)
        allowed[list(manifest.suppressed_ids)] = False
        assert sorted(own_ids[np.isfinite(own_log_probs)]) == np.flatnonzero(allowed).tolist()


def test_graphs_of_other_versions_are_refused(variants: Callable[[str], Variant], tmp_path: Path) -> None:
    variant = variants("plain")
    path = Path(shutil.copytree(variant.folder, tmp_path / "old")) / "decoder_step.onnx"
    path.write_bytes(path.read_bytes().replace(b"projection.suppressed_weight", b"another.name.of.these.weight"))
    with pytest.raises(GraphError, match="its scores are not where they are expected; convert the checkpoint again"):
        listed(path.parent, variant.manifest, SHORTLISTS["recurrent"], tmp_path / "listed")
