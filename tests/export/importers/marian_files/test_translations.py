"""Translations of a student against those that Marian and Bergamot made of the same files, and against NumPy."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from fxtranslate import Translator
from numpy import typing as npt

from export.cli import EXIT_BAD_CHECKPOINT, main
from export.convert import convert
from export.engine_decode import open_engine
from export.shortlist import read_shortlist
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.generate import Hypotheses, sequences_of
from service.engine.runtime import onnx_runner
from service.engine.runtime.device_cache import DeviceCache
from service.engine.runtime.host_cache import HostCache
from service.engine.runtime.session import SessionConfig
from service.engine.sequence import Sequence as EngineSequence
from service.models.loader import try_model
from service.text.tokenizers import Tokenizer, load_tokenizer
from tests.export.importers.marian_files.folders import DATA, arrays, config_item, container, float_items, folder
from tests.export.importers.marian_files.originals import ENGLISH_GERMAN, Original
from tests.found_bundles import find_bundles
from tests.references.fused_model import FusedDecoder, FusedEncoder
from tests.references.shortlists import allowed_tokens
from tests.unit.engine import reference_search

GREEDY = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=1)
NUM_LINES = 100
LINES = (DATA / "t300.en").read_text().split("\n")[:NUM_LINES]


def expected(kind: str) -> list[str]:
    return (DATA / f"expected.{kind}.txt").read_text().split("\n")[:NUM_LINES]


def equal(given: Sequence[str], wanted: Sequence[str]) -> int:
    return sum(itertools.starmap(str.__eq__, zip(given, wanted, strict=True)))


class Student:
    """A bundle, and what its engine makes of the lines, at most twice as long as the source."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.manifest = directory, Manifest.load(directory)
        self.tokenizer: Tokenizer = load_tokenizer(self.manifest.tokenizer, directory)
        pair = self.manifest.first_pair
        self.sources = [self.manifest.source_ids(self.tokenizer.encode(line), pair) for line in LINES]
        self.outputs = self.decode(self.sources)

    @property
    def texts(self) -> list[str]:
        return list(map(self.tokenizer.decode, self.outputs))

    def decode(
        self, sources: Sequence[tuple[int, ...]], max_slots: int = 32, options: DecodingOptions = GREEDY
    ) -> list[tuple[int, ...]]:
        """Decode as the options say, but with each source's own limit, and seed of a sample."""
        sequences = []
        for source in sources:
            own = dataclasses.replace(options, max_output_tokens=2 * len(source), seed=sum(source))
            sequences += sequences_of([(source, ())], own)
        return [best.token_ids for best, *_ in self.generate(sequences, max_slots)]

    def generate(self, sequences: Sequence[EngineSequence], max_slots: int = 32) -> list[Hypotheses]:
        with open_engine(self.directory, self.manifest, max_slots=max_slots) as engine:
            return engine.generate(sequences)

    def allowed(self, source: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Return which tokens (V,) Marian's shortlist allows."""
        lists, size = read_shortlist((DATA / "lex.bin").read_bytes(), 1000, 1000), self.manifest.model.vocabulary_size
        return allowed_tokens(lists.always, lists.offsets, lists.ids, source, size, has_one_vocabulary=True)

    def by_numpy(self, source: tuple[int, ...]) -> Iterator[int]:
        """Yield the tokens that the bundle's graphs mean."""
        encoder, decoder = self.graphs
        row, token = decoder.start(encoder.encode(source), encoder.allowed(source)), decoder_start(self.manifest)
        for _ in range(2 * len(source)):
            token = int(row.log_probs(token).argmax())
            if token == self.manifest.tokenizer.eos_id:
                return
            yield token

    @functools.cached_property
    def graphs(self) -> tuple[FusedEncoder, FusedDecoder]:
        graphs = self.manifest.graphs
        return FusedEncoder(self.directory / graphs.encoder), FusedDecoder(self.directory / graphs.decoder_step)


def decoder_start(manifest: Manifest) -> int:
    return manifest.tokenizer.decoder_start_id


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Student:
    """Mozilla's layout with a shortlist."""
    source = folder(tmp_path_factory.mktemp("listed") / "folder", "model.intgemm.alphas.bin", "vocab.spm", "lex.bin")
    convert(source, source.parent / "bundle", precision="int8", options=ENGLISH_GERMAN)
    return Student(source.parent / "bundle")


@pytest.fixture(scope="module")
def listed_in_float(tmp_path_factory: pytest.TempPathFactory) -> Student:
    """The model as Marian wrote it with the same shortlist, in plain graphs."""
    source = folder(tmp_path_factory.mktemp("listed") / "folder", "model.npz", "vocab.spm", "lex.bin")
    convert(source, source.parent / "bundle", options=ENGLISH_GERMAN)
    return Student(source.parent / "bundle")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(folder(tmp_path_factory.mktemp("original") / "folder", "model.npz", "vocab.spm"), LINES)


@pytest.fixture(params=["listed", "listed_in_float"])
def student(request: pytest.FixtureRequest) -> Student:
    """Fused and plain graphs with a shortlist."""
    found: Student = request.getfixturevalue(request.param)
    return found


def test_the_model_in_float_translates_as_marian_does(original: Original) -> None:
    assert equal(original.greedy(), expected("float32")) == NUM_LINES


@functools.cache
def by_fxtranslate(shortlist: bytes | None) -> list[str]:
    """Return what PyPI's fxtranslate makes of the lines, in float32; it writes an unknown token as nothing."""
    vocabulary = (DATA / "vocab.spm").read_bytes()
    model = container([*float_items(arrays()), config_item()])
    return list(map(Translator(model, vocabulary, vocabulary, shortlist).translate, LINES))


def test_the_model_in_float_translates_as_fxtranslate_does(original: Original) -> None:
    """It may choose `<unk>`, which Marian and we never do: the only outputs that differ are those where it does."""
    config, given = original.checkpoint.model.config, by_fxtranslate(None)
    outputs = original.decode(original.forbid(config.decoder_start_id))
    assert equal(original.texts(outputs), given) == NUM_LINES
    with_unknown = sum(config.unk_id in output for output in outputs)
    assert with_unknown > 0
    assert equal(expected("float32"), given) == NUM_LINES - with_unknown


def test_a_shortlist_is_read_as_fxtranslate_reads_it(original: Original, listed: Student) -> None:
    """An output that is cut at our limit is only its beginning: fxtranslate's limit is a little later."""
    allowed = torch.tensor(np.stack(list(map(listed.allowed, listed.sources))))
    allowed[:, original.checkpoint.model.config.unk_id] = True
    outputs = original.decode(~allowed)
    texts, given = original.texts(outputs), by_fxtranslate((DATA / "lex.bin").read_bytes())
    for output, source, text, wanted in zip(outputs, original.sources, texts, given, strict=True):
        assert wanted.startswith(text) if len(output) == 2 * len(source) else wanted == text
    assert equal(by_fxtranslate(None), given) < 0.7 * NUM_LINES


@pytest.mark.parametrize(
    ("model", "kind"),
    [("model.intgemm.alphas.bin", "bergamot-vnni.int8"), ("model.intgemm8.bin", "bergamot-vnni.noalpha")],
)
def test_in_8_bits_it_is_as_near_to_float_as_bergamot_is(tmp_path: Path, model: str, kind: str) -> None:
    convert(folder(tmp_path / "folder", model, "vocab.spm"), tmp_path / "bundle", None, None, "int8",
            options=ENGLISH_GERMAN)  # fmt: skip
    assert equal(Student(tmp_path / "bundle").texts, expected("float32")) >= equal(expected(kind), expected("float32"))


def test_with_a_shortlist_it_is_what_the_graphs_mean(listed: Student) -> None:
    """A token in a hundred sentences may be as good as another one."""
    assert listed.manifest.model.shortlist_size > 0
    given = [tuple(listed.by_numpy(source)) for source in listed.sources]
    assert sum(map(tuple.__eq__, given, listed.outputs)) >= NUM_LINES - 1


def test_only_listed_tokens_are_chosen(student: Student) -> None:
    for source, output in zip(student.sources[:50], student.outputs, strict=False):
        allowed = student.allowed(source)
        assert allowed[list(output)].all()
        assert allowed.sum() < 900


@pytest.mark.parametrize("changed", [{}, {"beam_size": 4}, {"temperature": 1.0, "top_k": 40}], ids=str)
def test_neighbours_change_nothing(student: Student, changed: dict[str, Any]) -> None:
    options = dataclasses.replace(GREEDY, **changed)
    sources = student.sources[:40]
    given = student.decode(sources, options=options)
    assert student.decode(sources[::-1], max_slots=5, options=options) == given[::-1]
    assert (given == student.outputs[:40]) == (not changed)


def test_in_float_with_a_shortlist_it_is_what_the_model_means(listed_in_float: Student, original: Original) -> None:
    allowed = torch.tensor(np.stack(list(map(listed_in_float.allowed, listed_in_float.sources))))
    meant = original.decode(~allowed | original.forbid(*original.checkpoint.suppressed_ids))
    assert sum(map(tuple.__eq__, listed_in_float.outputs, meant)) >= NUM_LINES - 1
    assert equal(listed_in_float.texts, expected("float32")) < 0.7 * NUM_LINES, "as without a shortlist"


class Search(NamedTuple):
    """A source, how it is translated, and the hypotheses."""

    source: tuple[int, ...]
    options: DecodingOptions
    outputs: list[tuple[int, ...]]
    scores: list[float]


@pytest.fixture(scope="module")
def searched(listed_in_float: Student, original: Original) -> list[Search]:
    """Beams, samples and scores of a few lines, from the model itself."""
    base = dataclasses.replace(GREEDY, max_output_tokens=12, return_scores=True)
    asked = [
        base,
        dataclasses.replace(base, beam_size=4, num_hypotheses=4),
        dataclasses.replace(base, temperature=1.5, top_k=64, seed=3),
        dataclasses.replace(base, beam_size=2, repetition_penalty=1.3, no_repeat_ngram_size=2, min_output_tokens=4),
    ]
    config, made = original.checkpoint.model.config, []
    for source in listed_in_float.sources[:4]:
        log_probs = functools.partial(listed_log_probs, original, source, listed_in_float.allowed(source))
        for options in asked:
            found = reference_search.search(log_probs, (config.decoder_start_id,), config.eos_id, options)
            outputs, scores = zip(*found, strict=True)
            ended = [tuple(token for token in output if token != config.eos_id) for output in outputs]
            made.append(Search(source, options, ended, list(scores)))
    return made


@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
def test_every_search_is_among_the_listed_tokens(
    listed_in_float: Student, searched: list[Search], monkeypatch: pytest.MonkeyPatch, *, on_device: bool
) -> None:
    """All in one batch; a device's memory, which is the CPU's here, holds the same lists."""
    if on_device:
        config = SessionConfig(intra_op_threads=1)
        monkeypatch.setattr(onnx_runner, "HostCache", lambda shape: DeviceCache(shape, config))
    sequences = [each for search in searched for each in sequences_of([(search.source, ())], search.options)]
    for search, given in zip(searched, listed_in_float.generate(sequences, max_slots=7), strict=True):
        assert [each.token_ids for each in given] == search.outputs
        np.testing.assert_allclose([each.score for each in given], search.scores, rtol=1e-4)


@torch.no_grad()
def listed_log_probs(
    original: Original, source: tuple[int, ...], allowed: npt.NDArray[np.bool_], inputs: Sequence[int]
) -> npt.NDArray[np.float32]:
    """Return log-probabilities (V,) among the allowed tokens, of which some are never chosen."""
    logits = original.model(torch.tensor([source]), torch.tensor([inputs]))[0, -1]
    logits[~torch.from_numpy(allowed)] = -torch.inf
    log_probs = logits.log_softmax(-1)
    log_probs[list(original.checkpoint.suppressed_ids)] = -torch.inf
    return np.asarray(log_probs.numpy(), np.float32)


def test_golden_pairs_are_those_of_the_shortlist(listed_in_float: Student, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = find_bundles(listed_in_float.directory)
    config, session_config = EngineConfig(max_slots=8), SessionConfig(intra_op_threads=1)
    try_model(found, config, session_config)
    monkeypatch.setattr(onnx_runner, "HostCache", AllowsAll)
    with pytest.raises(BundleError, match="fails its self-test"):
        try_model(found, config, session_config)


class AllowsAll(HostCache):
    """Rows that may consist of all tokens."""

    def store_sources(self, rows: Sequence[Sequence[int]], lengths: Sequence[int], num_live: int) -> list[bool]:
        are_finite = super().store_sources(rows, lengths, num_live)
        self.lists[:] = True
        return are_finite


def test_a_folder_of_folders_becomes_a_repository(tmp_path: Path) -> None:
    for name in ("ende", "fren"):
        folder(tmp_path / "all" / name, f"model.intgemm8.bin=model.{name}.intgemm8.bin", f"vocab.spm=vocab.{name}.spm")
    folder(tmp_path / "all" / "bad", "vocab.spm")
    (tmp_path / "all" / "metadata.json").write_text("{}")
    command = ["convert", str(tmp_path / "all"), "--all", "--precision", "int8", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == EXIT_BAD_CHECKPOINT
    assert "converted 2 of 3 checkpoints" in done.output
    assert sorted(path.parent.name for path in (tmp_path / "out").glob("*/1")) == ["ende", "fren"]
    assert Manifest.load(tmp_path / "out" / "fren" / "1").name == "fren"
