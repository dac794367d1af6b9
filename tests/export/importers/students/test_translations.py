"""Translations of a student against those of Marian, Bergamot and fxtranslate of the same files, and against NumPy."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from fxtranslate import Translator

from export.architecture.transformer import padding_mask
from export.cli import EXIT_BAD_CHECKPOINT, main
from export.convert import convert
from export.engine_decode import open_engine
from export.importers.options import ImportOptions
from export.importers.selection import import_checkpoint
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.engine.generate import sequences_of
from service.text.tokenizers import Tokenizer, load_tokenizer
from tests.export.importers.students.folders import DATA, arrays, config_item, container, float_items, folder
from tests.references.fused_model import FusedDecoder, FusedEncoder

ENGLISH_GERMAN = ImportOptions(source_language="en", target_language="de")
UNKNOWN = " \N{DOUBLE QUESTION MARK} "  # SentencePiece's text of `<unk>`
GREEDY = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=1)
LINES = (DATA / "t300.en").read_text().split("\n")[:300]


def expected(kind: str) -> list[str]:
    return (DATA / f"expected.{kind}.txt").read_text().split("\n")[:300]


def equal(given: Sequence[str], wanted: Sequence[str]) -> int:
    return sum(itertools.starmap(str.__eq__, zip(given, wanted, strict=True)))


class Student:
    """A bundle in 8 bits, and what its engine makes of the lines, at most twice as long as the source."""

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
        with open_engine(self.directory, self.manifest, max_slots=max_slots) as engine:
            return [best.token_ids for best, *_ in engine.generate(sequences)]

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


class Original:
    """The model in float32, and what it makes of the lines, at most twice as long as the source."""

    def __init__(self, directory: Path) -> None:
        self.checkpoint = import_checkpoint(folder(directory, "model.npz", "vocab.spm"), None, ENGLISH_GERMAN)
        write = self.checkpoint.tokenizer_files["vocab.spm"]
        assert not isinstance(write, Path)
        write(directory / "vocab.spm")
        self.tokenizer: Tokenizer = load_tokenizer(self.checkpoint.tokenizer, directory)
        eos_id = self.checkpoint.tokenizer.eos_id
        self.sources = [(*self.tokenizer.encode(line), eos_id) for line in LINES]

    def texts(self, outputs: Sequence[Sequence[int]]) -> list[str]:
        """Return outputs as text; unknown tokens are nothing."""
        return [self.tokenizer.decode(output).replace(UNKNOWN, "") for output in outputs]

    @torch.no_grad()
    def decode(self, forbidden: torch.Tensor) -> list[list[int]]:
        """Decode all sources together, anew in each step; tokens of a mask (V,) or (N, V) are never chosen."""
        model, config = self.checkpoint.model, self.checkpoint.model.config
        lengths = torch.tensor([len(source) for source in self.sources])
        width = int(lengths.max())
        source_ids = torch.tensor([[*source, *[config.pad_id] * (width - len(source))] for source in self.sources])
        mask = padding_mask(lengths, width)
        memory = model.encoder(source_ids, mask)
        read = torch.full((len(source_ids), 2 + 2 * width), config.eos_id)
        read[:, 0] = config.decoder_start_id
        running = torch.arange(len(read))
        for length in range(1, 1 + 2 * width):
            hidden = model.decoder(read[running, :length], memory[running], mask[running])[:, -1]
            logits = model.projection(hidden).masked_fill(forbidden.expand(len(read), -1)[running], -torch.inf)
            read[running, length] = logits.argmax(-1)
            running = running[(read[running, length] != config.eos_id) & (2 * lengths[running] > length)]
            if not len(running):
                break
        return [row[1 : row.index(config.eos_id)] for row in read.tolist()]

    def forbid(self, *token_ids: int) -> torch.Tensor:
        """Return a mask (V,) of tokens."""
        size = self.checkpoint.model.config.target_vocabulary_size
        return torch.isin(torch.arange(size), torch.tensor(token_ids))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return Original(tmp_path_factory.mktemp("original") / "folder")


def test_the_model_in_float_translates_as_marian_does(original: Original) -> None:
    outputs = original.decode(original.forbid(*original.checkpoint.suppressed_ids))
    assert equal(original.texts(outputs), expected("float32")) == 300


def by_fxtranslate(shortlist: bytes | None) -> list[str]:
    """Return what PyPI's fxtranslate makes of the lines, in float32; it writes an unknown token as nothing."""
    vocabulary = (DATA / "vocab.spm").read_bytes()
    model = container([*float_items(arrays()), config_item()])
    return list(map(Translator(model, vocabulary, vocabulary, shortlist).translate, LINES))


def test_the_model_in_float_translates_as_fxtranslate_does(original: Original) -> None:
    """It may choose `<unk>`, which Marian and we never do: the only outputs that differ are those where it does."""
    config, given = original.checkpoint.model.config, by_fxtranslate(None)
    outputs = original.decode(original.forbid(config.decoder_start_id))
    assert equal(original.texts(outputs), given) == 300
    with_unknown = sum(config.unk_id in output for output in outputs)
    assert with_unknown > 0
    assert equal(expected("float32"), given) == 300 - with_unknown


def test_a_shortlist_is_read_as_fxtranslate_reads_it(original: Original, listed: Student) -> None:
    """An output that is cut at our limit is only its beginning: fxtranslate's limit is a little later."""
    encoder, _ = listed.graphs
    lists = [mask for source in listed.sources if (mask := encoder.allowed(source)) is not None]
    allowed = torch.tensor(np.stack(lists))
    allowed[:, original.checkpoint.model.config.unk_id] = True
    outputs = original.decode(~allowed)
    texts, given = original.texts(outputs), by_fxtranslate((DATA / "lex.bin").read_bytes())
    for output, source, text, wanted in zip(outputs, original.sources, texts, given, strict=True):
        assert wanted.startswith(text) if len(output) == 2 * len(source) else wanted == text
    assert equal(by_fxtranslate(None), given) < 200


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
    assert sum(map(tuple.__eq__, given, listed.outputs)) >= 297


def test_only_listed_tokens_are_chosen(listed: Student) -> None:
    encoder, _ = listed.graphs
    for source, output in zip(listed.sources[:50], listed.outputs, strict=False):
        allowed = encoder.allowed(source)
        assert allowed is not None
        assert allowed[list(output)].all()
        assert allowed.sum() < 900


def test_a_folder_of_folders_becomes_a_repository(tmp_path: Path) -> None:
    for name in ("ende", "fren"):
        folder(tmp_path / "all" / name, f"model.intgemm8.bin=model.{name}.intgemm8.bin", f"vocab.spm=vocab.{name}.spm")
    folder(tmp_path / "all" / "bad", "vocab.spm")
    (tmp_path / "all" / "metadata.json").write_text("{}")
    command = ["convert", str(tmp_path / "all"), "--all", "--precision", "int8", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == EXIT_BAD_CHECKPOINT
    assert "2 of 3 checkpoints are converted" in done.output
    assert sorted(path.parent.name for path in (tmp_path / "out").glob("*/1")) == ["ende", "fren"]
    assert Manifest.load(tmp_path / "out" / "fren" / "1").name == "fr-en"


@pytest.mark.parametrize("changed", [{}, {"beam_size": 4}, {"temperature": 1.0, "top_k": 40}], ids=str)
def test_neighbours_change_nothing(listed: Student, changed: dict[str, Any]) -> None:
    options = dataclasses.replace(GREEDY, **changed)
    given = listed.decode(listed.sources, options=options)
    assert listed.decode(listed.sources[::-1], max_slots=5, options=options) == given[::-1]
    assert (given == listed.outputs) == (not changed)
