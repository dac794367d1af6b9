"""The committed int8 bundles: they equal what `make export` writes."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from export.bundle_writer import checksums
from export.convert import convert
from export.engine_decode import decode_golden, greedy_options, open_engine, recorded_attention
from export.graphs.weights_file import WEIGHTS
from service.bundle.checksums import check_intact
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.engine.generate import sequences_of
from tests.servers import REPOSITORY

NAMES = sorted(path.name for path in (REPOSITORY / "checkpoints").iterdir())
MAX_SHIPPED_BYTES = 17 * 1024 * 1024


def shipped(name: str) -> Path:
    return REPOSITORY / "models" / name / "1"


def test_every_checkpoint_has_its_bundle_of_a_size_to_commit() -> None:
    assert sorted(path.name for path in (REPOSITORY / "models").iterdir()) == NAMES
    for name in NAMES:
        assert Manifest.load(shipped(name)).licence == "CC-BY-4.0"
        assert sum(path.stat().st_size for path in shipped(name).iterdir()) <= MAX_SHIPPED_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_its_golden_outputs_are_those_of_the_kernels(name: str) -> None:
    """They compute the same on every CPU, so what a server says about its self-test is no accident."""
    manifest = Manifest.load(shipped(name))
    assert decode_golden(shipped(name), manifest) == [golden.output_ids for golden in manifest.golden]


# de-en is made as en-de is.
@pytest.mark.parametrize("name", [pytest.param(NAMES[0], marks=pytest.mark.full), *NAMES[1:]])
def test_exporting_again_gives_the_same_files(name: str, tmp_path: Path) -> None:
    convert(REPOSITORY / "checkpoints" / name, tmp_path / "1", precision="int8")
    manifest = Manifest.load(shipped(name))
    for file in (*manifest.graphs.files, WEIGHTS):
        assert (tmp_path / "1" / file).read_bytes() == (shipped(name) / file).read_bytes(), file


@pytest.mark.parametrize("name", NAMES)
def test_a_bundle_of_an_older_form_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    """int8 once was plain graphs."""
    old = Path(shutil.copytree(shipped(name), tmp_path / "old"))
    manifest = Manifest.load(old)
    shutil.copyfile(REPOSITORY / "build" / "float32" / name / "1" / "encoder.onnx", old / "encoder.onnx")
    dataclasses.replace(manifest, checksums=checksums(old)).save(old)
    with pytest.raises(BundleError, match=r"is not allowed in a bundle: .*convert its checkpoint again") as refused:
        check_intact(old, Manifest.load(old))
    assert "\n" not in str(refused.value)


def draw(rng: np.random.Generator, length: int) -> tuple[int, ...]:
    return (*rng.integers(40, 4600, length - 1).tolist(), 2)  # within every shipped vocabulary


@pytest.mark.parametrize("seed", range(2))
def test_alignments_do_not_depend_on_neighbours_or_padding(seed: int) -> None:
    """Bitwise, in the way the service runs them."""
    manifest, rng = Manifest.load(shipped("en-de")), np.random.default_rng(seed)
    pairs = [(draw(rng, int(length)), draw(rng, int(rng.integers(2, 60)))) for length in rng.integers(2, 60, 40)]
    with open_engine(shipped("en-de"), manifest) as engine:
        for pair, attention in zip(pairs, recorded_attention(engine, manifest, pairs), strict=True):
            assert np.array_equal(attention, recorded_attention(engine, manifest, [pair])[0])


def test_beams_are_aligned_as_if_their_translations_were_read_again() -> None:
    manifest, rng = Manifest.load(shipped("en-de")), np.random.default_rng(3)
    sources = [draw(rng, int(length)) for length in rng.integers(2, 60, 20)]
    options = dataclasses.replace(greedy_options(manifest, 60), beam_size=4, num_hypotheses=4)
    sequences = [
        dataclasses.replace(each, wants_attention=True) for each in sequences_of([(s, ()) for s in sources], options)
    ]
    with open_engine(shipped("en-de"), manifest) as engine:
        found = [
            (sequence.source_ids, each)
            for sequence, all_ in zip(sequences, engine.generate(sequences), strict=True)
            for each in all_
        ]
        again = recorded_attention(engine, manifest, [(source, each.token_ids) for source, each in found])
    assert len({each.finish_reason for _, each in found}) > 1
    for (_, each), attention in zip(found, again, strict=True):
        assert each.attention is not None
        np.testing.assert_allclose(each.attention, attention, atol=1e-5)


def test_alignments_find_names_numbers_and_symbols() -> None:
    """More than four of five source pieces copied to the translation align with their copies, in int8 as in float32."""
    said = Manifest.load(shipped("en-de")).verification["alignment"]
    assert said["share_found"] > 0.8
    assert said["share_found_int8"] == pytest.approx(said["share_found"], abs=0.02)
