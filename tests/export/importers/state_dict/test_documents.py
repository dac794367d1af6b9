"""Each document's model through `convert`: the exported graphs match an independent reading of it."""

import functools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from export.convert import convert
from export.engine_decode import greedy_options, open_engine
from export.graphs.execution import GraphPair, decode_cached
from service.bundle.manifest import Manifest
from tests.export.importers.state_dict.checkpoints import (
    NEVER,
    TARGET_IDS,
    TARGET_SIZE,
    Notebook,
    make,
    random_sources,
    renamed,
)
from tests.export.importers.state_dict.readings import (
    LONGEST,
    WIDTH,
    Attention,
    Attention003,
    Choices,
    JointAttention,
)

Converted = tuple[Notebook, Path, Manifest]
LENGTHS, NUM_STEPS = [1, 2, 3, 5, 8, 13, 21, 34], 10
START_ID, EOS_ID = TARGET_IDS["bos_id"], TARGET_IDS["eos_id"]
# Each document's part inside 002's model if it describes only attention or a block; positions as in the paper, except
# where the document has its own. Seeds are chosen so that sentences end, each in its own way.
SMALL = partial(Choices, num_layers=(1, 1), base=10000.0)
DOCUMENTS: dict[str, tuple[Choices, dict[str, Any]]] = {
    "000": (SMALL(partial(Attention, "W_q W_k W_v W_o")), {"seed": 2}),
    # Four heads of four components: padded for the kernels, no output layer to drop the padding.
    "001": (SMALL(partial(JointAttention, True, 4)), {"seed": 4, "num_heads": 4, "attention": "packed"}),
    "002": (SMALL(partial(Attention, "w_query w_key w_value w_o"), base=1000.0), {"seed": 2}),
    "003": (SMALL(Attention003), {"seed": 9}),
    "004": (
        SMALL(
            partial(Attention, "to_queries to_keys to_values unify_heads", bias=False, by_width=True),
            partial(nn.LayerNorm, WIDTH),
        ),
        {"seed": 2, "score_scale": "model"},
    ),
}
WITH_JSON = ("003", "004")  # tokenizers; the others have SentencePiece's


@pytest.fixture(scope="module")
def convert_document(
    tokenizers: tuple[Path, Path], json_tokenizers: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Converted]:
    """Return a function that converts a document's model, once to each precision."""

    @functools.cache
    def run(document: str, precision: str = "float32") -> Converted:
        directory = tmp_path_factory.mktemp(document)
        choices, said = DOCUMENTS[document]
        notebook = make(choices, **said).write(
            directory / "saved",
            json_tokenizers if document in WITH_JSON else tokenizers,
            lambda weights, path: torch.save(renamed(weights, document), path),
        )
        bundle = directory / "bundle"
        manifest = convert(notebook.path, bundle, "pytorch", precision=precision, options=notebook.options)
        return notebook, bundle, manifest

    return run


# Tracing takes seconds: importing is tested with the attention of each (`test_logits.py`), graphs of their choices in
# `graphs/test_variants.py`.
@pytest.mark.full
@pytest.mark.parametrize("document", DOCUMENTS)
def test_log_probs_greedy_tokens_and_manifest(document: str, convert_document: Callable[..., Converted]) -> None:
    notebook, bundle, manifest = convert_document(document)
    graphs = GraphPair(bundle / manifest.graphs.encoder, bundle / manifest.graphs.decoder_step, manifest.model, 1)
    sources = random_sources(LENGTHS)
    targets = np.random.default_rng(0).integers(4, TARGET_SIZE, (len(sources), NUM_STEPS))
    targets[:, 0] = START_ID
    padded = torch.tensor([source + [0] * (max(map(len, sources)) - len(source)) for source in sources])
    lengths = torch.tensor([len(source) for source in sources])
    log_probs = notebook.model(padded, torch.from_numpy(targets), lengths).log_softmax(-1).numpy()
    log_probs[:, :, NEVER] = -np.inf
    state = graphs.start(sources, manifest.tokenizer.pad_id, NUM_STEPS)
    for step in range(NUM_STEPS):
        ids, given = state.candidates(targets[:, step], TARGET_SIZE)
        np.testing.assert_allclose(given, np.take_along_axis(log_probs[:, step], ids, 1), atol=5e-5)

    sources = random_sources(LENGTHS * 3, seed=2)
    expected = [notebook.model.greedy(source, START_ID, EOS_ID, NEVER, 24) for source in sources]
    assert decode_cached(graphs, manifest.tokenizer, [(source, (), 24) for source in sources]) == expected
    assert len(set(expected)) > len(sources) // 2
    assert len({len(output) for output in expected}) > 3

    check_manifest(document, bundle, manifest)
    assert len(manifest.golden) >= 3
    for golden in manifest.golden:
        output = notebook.model.greedy(list(golden.source_ids), START_ID, EOS_ID, NEVER, LONGEST[1])
        assert golden.output_ids == output


def check_manifest(document: str, bundle: Path, manifest: Manifest) -> None:
    assert Manifest.load(bundle) == manifest
    suffix = "json" if document in WITH_JSON else "model"
    assert manifest.tokenizer.files == (f"source.{suffix}", f"target.{suffix}")
    assert (manifest.tokenizer.eos_id, manifest.tokenizer.source_eos_id) == (2, 3)
    (pair,) = manifest.languages
    assert (pair.source_language_code, pair.target_language_code, pair.source_prefix_ids) == ("en", "hi", (2,))
    assert manifest.suppressed_ids == tuple(NEVER)
    assert (manifest.limits.max_source_tokens, manifest.limits.max_output_tokens) == LONGEST
    for golden in manifest.golden:
        assert (golden.source_ids[0], golden.source_ids[-1]) == (2, 3)


@pytest.mark.parametrize("document", ["001", "002", "004"])
def test_int8_is_the_same_whatever_the_batch(document: str, convert_document: Callable[..., Converted]) -> None:
    """Handwritten norms and parallel heads, or tokenizers in JSON; the conversion compares it with the model."""
    _, bundle, manifest = convert_document(document, "int8")
    check_manifest(document, bundle, manifest)
    rows = [(source, ()) for source in random_sources([14] * 6)]
    with open_engine(bundle, manifest) as engine:
        options = greedy_options(manifest, 8)
        assert engine.decode(rows, options) == [engine.decode([row], options)[0] for row in rows]
