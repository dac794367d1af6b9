"""Each document's model through `convert`: the exported graphs match an independent reading of it."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from export.convert import convert
from export.engine_decode import greedy_options, open_engine
from export.graphs.execution import Floats, GraphPair, decode_cached
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from tests.export.importers.state_dict.checkpoints import NEVER, SIZES, TARGET_IDS, Notebook, make, random_sources
from tests.export.importers.state_dict.readings import (
    Attention000,
    Attention001,
    Attention002,
    Attention003,
    Attention004,
    Choices,
)
from tests.unit.engine import reference_search

WIDTH = SIZES.d_model
LENGTHS = [1, 2, 3, 5, 8, 13, 21, 34]
NUM_STEPS = 10
START_ID, EOS_ID = TARGET_IDS["bos_id"], TARGET_IDS["eos_id"]

# Each document's part inside 002's model if it describes only attention or a block; positions as in the paper, except
# where the document has its own. Seeds are chosen so that sentences end, each in its own way.
SMALLEST = replace(SIZES, num_encoder_layers=1, num_decoder_layers=1)
DOCUMENTS = {
    "000": lambda: make(Choices(lambda: Attention000(WIDTH, 2), base=10000.0), SMALLEST, seed=2),
    "001": lambda: make(  # four heads of four components: padded for the kernels, no output layer to drop the padding
        Choices(lambda: Attention001(WIDTH, 4), base=10000.0),
        replace(SMALLEST, num_heads=4),
        seed=4,
        attention="packed",
    ),
    "002": lambda: make(Choices(lambda: Attention002(WIDTH, 2), base=1000.0), SMALLEST, seed=2),
    "003": lambda: make(Choices(lambda: Attention003(WIDTH, 2), base=10000.0), SMALLEST, seed=9),
    "004": lambda: make(
        Choices(lambda: Attention004(WIDTH, 2), lambda: nn.LayerNorm(WIDTH), is_numbered=True, base=10000.0),
        SMALLEST,
        seed=2,
        score_scale="model",
    ),
}


WITH_JSON = ("003", "004")  # tokenizers; the others have SentencePiece's
# Tracing takes seconds. Importing is tested with the attention of each document (test_options.py).
CONVERTED = (
    pytest.param("000", marks=pytest.mark.full),
    "001",
    "002",
    pytest.param("003", marks=pytest.mark.full),
    "004",
)


@pytest.fixture(scope="module")
def convert_document(
    tokenizers: tuple[Path, Path], json_tokenizers: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Notebook, Path, Manifest]]:
    """Return a function that converts a document's model, once."""

    @functools.cache
    def run(document: str) -> tuple[Notebook, Path, Manifest]:
        directory = tmp_path_factory.mktemp(document)
        files = json_tokenizers if document in WITH_JSON else tokenizers
        notebook = DOCUMENTS[document]().write(directory / "saved", files)
        bundle = directory / "bundle"
        return notebook, bundle, convert(notebook.path, bundle, "pytorch", options=notebook.options)

    return run


@pytest.fixture(scope="module", params=CONVERTED)
def converted(
    request: pytest.FixtureRequest, convert_document: Callable[[str], tuple[Notebook, Path, Manifest]]
) -> tuple[Notebook, Path, Manifest]:
    return convert_document(request.param)


@pytest.fixture(scope="module")
def graphs(converted: tuple[Notebook, Path, Manifest]) -> GraphPair:
    _, bundle, manifest = converted
    return GraphPair(bundle / manifest.graphs.encoder, bundle / manifest.graphs.decoder_step, manifest.model, 1)


def test_log_probs_in_a_ragged_batch(converted: tuple[Notebook, Path, Manifest], graphs: GraphPair) -> None:
    notebook, _, manifest = converted
    sources, size = random_sources(LENGTHS), SIZES.target_vocabulary_size
    targets = np.random.default_rng(0).integers(4, size, (len(sources), NUM_STEPS))
    targets[:, 0] = START_ID
    width = max(map(len, sources))
    padded = torch.tensor([source + [0] * (width - len(source)) for source in sources])
    lengths = torch.tensor([len(source) for source in sources])
    expected = notebook.model(padded, torch.from_numpy(targets), lengths).log_softmax(-1).numpy()
    expected[:, :, NEVER] = -np.inf
    state = graphs.start(sources, manifest.tokenizer.pad_id, NUM_STEPS)
    for step in range(NUM_STEPS):
        ids, log_probs = state.candidates(targets[:, step], size)
        given = np.empty_like(log_probs)
        np.put_along_axis(given, ids, log_probs, axis=1)
        np.testing.assert_allclose(given, expected[:, step], atol=5e-5)


def test_greedy_tokens(converted: tuple[Notebook, Path, Manifest], graphs: GraphPair) -> None:
    notebook, _, manifest = converted
    sources = random_sources(LENGTHS * 3, seed=2)
    expected = [notebook.model.greedy(source, START_ID, EOS_ID, NEVER, 24) for source in sources]
    assert decode_cached(graphs, manifest.tokenizer, [(source, (), 24) for source in sources]) == expected
    assert len(set(expected)) > len(sources) // 2
    assert len({len(output) for output in expected}) > 3


def test_golden_sentences_are_the_readings_own(converted: tuple[Notebook, Path, Manifest]) -> None:
    """Through tokenizers of both languages, wrapped as the configuration says."""
    notebook, _, manifest = converted
    limit = manifest.limits.max_output_tokens
    assert len(manifest.golden) >= 3
    for golden in manifest.golden:
        assert (golden.source_ids[0], golden.source_ids[-1]) == (2, 3)
        expected = notebook.model.greedy(list(golden.source_ids), START_ID, EOS_ID, NEVER, limit)
        assert golden.output_ids == expected


def test_the_bundle_says_what_it_is(converted: tuple[Notebook, Path, Manifest]) -> None:
    notebook, bundle, manifest = converted
    assert Manifest.load(bundle) == manifest
    suffix = "json" if manifest.tokenizer.kind == "tokenizers" else "model"
    assert manifest.tokenizer.files == (f"source.{suffix}", f"target.{suffix}")
    assert (manifest.tokenizer.eos_id, manifest.tokenizer.source_eos_id) == (2, 3)
    (pair,) = manifest.languages
    assert (pair.source_language_code, pair.target_language_code, pair.source_prefix_ids) == ("en", "hi", (2,))
    assert manifest.suppressed_ids == tuple(NEVER)
    assert manifest.limits.max_source_tokens == notebook.said["max_source_positions"]


def test_int8_of_what_no_dense_layer_takes_part_in(
    convert_document: Callable[[str], tuple[Notebook, Path, Manifest]], tmp_path: Path
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
def test_the_engine_searches_as_the_reading_does(
    convert_document: Callable[[str], tuple[Notebook, Path, Manifest]], count: int
) -> None:
    """Greedy and with four beams, all in one running batch; a beam may differ where two scores are nearly equal."""
    notebook, bundle, manifest = convert_document("002")
    lengths = np.random.default_rng(5).integers(1, 40, count).tolist()
    sources = random_sources(lengths, seed=4)
    options = [
        DecodingOptions(beam_size=size, length_penalty=0.8, num_hypotheses=1, max_output_tokens=16) for size in (1, 4)
    ]
    with open_engine(bundle, manifest) as engine:
        greedy, beams = (engine.decode([(source, ()) for source in sources], each) for each in options)
    num_ties = 0
    for source, plain, best in zip(sources, greedy, beams, strict=True):

        @functools.cache
        def log_probs(fed: tuple[int, ...], source: list[int] = source) -> Floats:
            scores = notebook.model(torch.tensor([source]), torch.tensor([fed]))[0, -1].log_softmax(-1)
            scores[NEVER] = -torch.inf
            return np.asarray(scores.numpy(), np.float32)

        def along(fed: Sequence[int], log_probs: Callable[[tuple[int, ...]], Floats] = log_probs) -> Floats:
            return log_probs(tuple(fed))

        expected = [reference_search.search(along, [START_ID], EOS_ID, each)[0] for each in options]
        assert ended(plain[0].token_ids, 16) == expected[0][0]
        if ended(best[0].token_ids, 16) != expected[1][0]:
            assert best[0].score == pytest.approx(expected[1][1], abs=1e-4)
            num_ties += 1
    assert num_ties <= count // 200


def ended(token_ids: tuple[int, ...], limit: int) -> tuple[int, ...]:
    """Append the end-of-sentence id that an engine's output lacks."""
    return token_ids if len(token_ids) == limit else (*token_ids, EOS_ID)
