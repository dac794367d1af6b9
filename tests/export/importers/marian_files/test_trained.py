"""Models of kinds that OPUS-MT and Mozilla don't have, against what Marian makes of them."""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from export.convert import convert
from export.engine_decode import open_engine
from export.importers.marian_files.container import CONFIG
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.engine.generate import sequences_of
from service.text.tokenizers import load_tokenizer
from tests.export.importers.marian_files.folders import DATA
from tests.export.importers.marian_files.originals import ENGLISH_GERMAN, Original

TRAINED = DATA / "trained"
VOCABULARIES = {"untied": ("srcvocab", "trgvocab"), "separate": ("srcvocab", "trgvocab")}
NAMES = ("pre_norm", "repeated_layers", "separate", "untied")


def lines(name: str) -> list[str]:
    return (TRAINED / name).read_text(encoding="utf-8").split("\n")[:100]


def folder(directory: Path, name: str) -> Path:
    directory.mkdir()
    shutil.copyfile(TRAINED / f"{name}.npz", directory / "model.npz")
    for vocabulary in VOCABULARIES.get(name, ("vocab",)):
        shutil.copyfile(TRAINED / f"{vocabulary}.spm", directory / f"{vocabulary}.spm")
    return directory


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_marian(tmp_path: Path, name: str) -> None:
    """Of given translations, teacher-forced as in training. That is how Marian itself reads `pre_norm` only there: when
    it translates with self-attention, keys and values of the tokens before are without their norm (Marian 1.12).
    """
    original = Original(folder(tmp_path / "folder", name), lines("t100.en"))
    wanted = list(map(float, lines(f"{name}.scores")))
    np.testing.assert_allclose(original.scores(lines("t100.de")), wanted, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES[1:])
def test_translations_are_those_of_marian(tmp_path: Path, name: str) -> None:
    translated = Original(folder(tmp_path / "folder", name), lines("t100.en")).greedy()
    assert sum(itertools.starmap(str.__eq__, zip(translated, lines(f"{name}.txt"), strict=True))) == 100


def test_without_positions(tmp_path: Path) -> None:
    directory = folder(tmp_path / "folder", "repeated_layers")
    _change(directory / "model.npz", lambda settings: {**settings, "transformer-disable-position-embeddings": True})
    translated = Original(directory, lines("t100.en")).greedy()
    assert sum(itertools.starmap(str.__eq__, zip(translated, lines("no_positions.txt"), strict=True))) == 100


def _change(path: Path, change: Callable[[dict[str, object]], dict[str, object]]) -> None:
    """Rewrite an archive with other settings."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    settings = yaml.safe_load(arrays[CONFIG].astype(np.uint8).tobytes().rstrip(b"\0"))
    arrays[CONFIG] = np.frombuffer(yaml.safe_dump(change(settings)).encode(), np.int8)
    np.savez(path, **arrays)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES[1:])
def test_in_8_bits_most_translations_are_the_same(tmp_path: Path, name: str) -> None:
    convert(folder(tmp_path / "folder", name), tmp_path / "bundle", precision="int8", options=ENGLISH_GERMAN)
    manifest = Manifest.load(tmp_path / "bundle")
    tokenizer = load_tokenizer(manifest.tokenizer, tmp_path / "bundle")
    rows = [(manifest.source_ids(tokenizer.encode(line), manifest.first_pair), ()) for line in lines("t100.en")]
    options = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=60)
    with open_engine(tmp_path / "bundle", manifest, max_slots=32) as engine:
        translated = [tokenizer.decode(best.token_ids) for best, *_ in engine.generate(sequences_of(rows, options))]
    assert sum(itertools.starmap(str.__eq__, zip(translated, lines(f"{name}.txt"), strict=True))) >= 75
