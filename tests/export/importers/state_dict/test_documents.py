"""Each document's model through `convert`: the exported graphs match an independent reading of it."""

import functools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from export.convert import convert
from export.engine_decode import greedy_options, open_engine
from export.graphs.execution import Floats, GraphPair, decode_cached
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
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
from tests.unit.engine import reference_search

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
IN_FULL = ("000", "003")  # tracing takes seconds; importing is tested with the attention of each (test_logits.py)


@pytest.fixture(scope="module")
def convert_document(
    tokenizers: tuple[Path, Path], json_tokenizers: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Converted]:
    """Return a function that converts a document's model, once."""

    @functools.cache
    def run(document: str) -> Converted:
        directory = tmp_path_factory.mktemp(document)
        choices, said = DOCUMENTS[document]
        notebook = make(choices, **said).write(
            directory / "saved",
            json_tokenizers if document in WITH_JSON else tokenizers,
            lambda weights, path: torch.save(renamed(weights, document), path),
        )
        bundle = directory / "bundle"
        return notebook, bundle, convert(notebook.path, bundle, "pytorch", options=notebook.options)

    return run


@pytest.mark.parametrize(
    "document", [pytest.param(each, marks=[pytest.mark.full] * (each in IN_FULL)) for each in DOCUMENTS]
)
def test_log_probs_greedy_tokens_and_manifest(document: str, convert_document: Callable[[str], Converted]) -> None:
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

    assert Manifest.load(bundle) == manifest
    suffix = "json" if document in WITH_JSON else "model"
    assert manifest.tokenizer.files == (f"source.{suffix}", f"target.{suffix}")
    assert (manifest.tokenizer.eos_id, manifest.tokenizer.source_eos_id) == (2, 3)
    (pair,) = manifest.languages
    assert (pair.source_language_code, pair.target_language_code, pair.source_prefix_ids) == ("en", "hi", (2,))
    assert manifest.suppressed_ids == tuple(NEVER)
    assert (manifest.limits.max_source_tokens, manifest.limits.max_output_tokens) == LONGEST
    assert len(manifest.golden) >= 3
    for golden in manifest.golden:
        assert (golden.source_ids[0], golden.source_ids[-1]) == (2, 3)
        output = notebook.model.greedy(list(golden.source_ids), START_ID, EOS_ID, NEVER, LONGEST[1])
        assert golden.output_ids == output


def test_int8_of_what_no_dense_layer_takes_part_in(
    convert_document: Callable[[str], Converted], tmp_path: Path
) -> None:
    """Handwritten norms and parallel heads: compared with the model by the conversion, and the same whatever the
    batch."""
    notebook, _, manifest = convert_document("001")
    quantized = convert(notebook.path, tmp_path / "int8", "pytorch", precision="int8", options=notebook.options)
    assert quantized.tokenizer == manifest.tokenizer
    rows = [(source, ()) for source in random_sources([14] * 6)]
    with open_engine(tmp_path / "int8", quantized) as engine:
        options = greedy_options(quantized, 8)
        assert engine.decode(rows, options) == [engine.decode([row], options)[0] for row in rows]


@pytest.mark.parametrize("count", [16, pytest.param(500, marks=[pytest.mark.full, pytest.mark.timeout(600)])])
def test_the_engine_searches_as_the_reading_does(convert_document: Callable[[str], Converted], count: int) -> None:
    """Greedy and with four beams, all in one running batch; a beam may differ where two scores are nearly equal."""
    notebook, bundle, manifest = convert_document("002")
    sources = random_sources(np.random.default_rng(5).integers(1, 40, count).tolist(), seed=4)
    options = [
        DecodingOptions(beam_size=size, length_penalty=0.8, num_hypotheses=1, max_output_tokens=16) for size in (1, 4)
    ]
    with open_engine(bundle, manifest) as engine:
        found = [engine.decode([(source, ()) for source in sources], each) for each in options]
    num_ties = 0
    for source, *results in zip(sources, *found, strict=True):

        @functools.cache
        def log_probs(fed: tuple[int, ...], source: list[int] = source) -> Floats:
            scores = notebook.model(torch.tensor([source]), torch.tensor([fed]))[0, -1].log_softmax(-1)
            scores[NEVER] = -torch.inf
            return np.asarray(scores.numpy(), np.float32)

        def along(fed: Sequence[int], log_probs: Callable[[tuple[int, ...]], Floats] = log_probs) -> Floats:
            return log_probs(tuple(fed))

        for how, (best, *_) in zip(options, results, strict=True):
            token_ids, score = reference_search.search(along, [START_ID], EOS_ID, how)[0]
            ended = best.token_ids if len(best.token_ids) == 16 else (*best.token_ids, EOS_ID)
            if ended != token_ids:
                assert how.beam_size > 1
                assert best.score == pytest.approx(score, abs=1e-4)
                num_ties += 1
    assert num_ties <= count // 200
