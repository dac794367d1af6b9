"""A damaged or malicious bundle is rejected in one line, in little time and memory; nothing else suffers."""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.bundle.transfer.bundles import transfer
from service.cli.errors import ExitCode
from tests.faults.bundle_loader import BundleLoader
from tests.faults.damaged_bundles import (
    MANIFEST,
    Damage,
    to_files,
    to_manifests,
    with_right_checksums,
    with_tokenizer,
)
from tests.servers import REPOSITORY, dragoman
from tests.tokenizer_folders import write_bpe, write_m2m100, write_marian

FILES = ["encoder.onnx", "decoder_step.onnx", "alignment.onnx", "source.model"]
LIMIT_SECONDS = 60.0
MOST_MIB = 1500.0


@pytest.fixture(scope="module")
def loader() -> Iterator[BundleLoader]:
    loader = BundleLoader(LIMIT_SECONDS)
    yield loader
    loader.close()


def check(loader: BundleLoader, good: Path, damages: Iterable[Damage], place: Path) -> Counter[str]:
    """Check that each damaged copy of `good` is rejected in one line that names it, or, where permitted, loaded."""
    kinds: Counter[str] = Counter()
    failures = []
    for damage in damages:
        bundle = place / "tiny" / "1"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(good, bundle)
        damage.inflict(bundle)
        outcome = loader.load(place)
        kinds[outcome.kind] += 1
        fine = outcome.peak_mib < MOST_MIB
        if outcome.kind == "refused":
            fine &= outcome.message.isprintable() and len(outcome.message) < 2000 and str(place) in outcome.message
        else:
            fine &= outcome.kind == "loaded" and damage.may_load
        if not fine:
            failures.append(f"{damage.name}: {outcome}"[:500])
    shutil.rmtree(place, ignore_errors=True)
    assert not failures, "\n".join(failures)
    return kinds


def test_damaged_files(loader: BundleLoader, tiny_bundle: Path, tmp_path: Path) -> None:
    check(loader, tiny_bundle, to_files([*FILES, MANIFEST], seed=1, num_flips=8), tmp_path / "models")


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_hostile_manifests(loader: BundleLoader, tiny_bundle: Path, tmp_path: Path, every: int) -> None:
    check(loader, tiny_bundle, list(to_manifests())[::every], tmp_path / "models")


def test_damage_with_right_checksums(loader: BundleLoader, tiny_bundle: Path, tmp_path: Path) -> None:
    damages = with_right_checksums(FILES, seed=2, number=40)
    kinds = check(loader, tiny_bundle, damages, tmp_path / "models")
    assert kinds["loaded"], "nothing is left of these bundles: no control"


def test_the_loader_notices_what_is_not_refused(loader: BundleLoader, tiny_bundle: Path, tmp_path: Path) -> None:
    """The control: an intact bundle that is expected to be rejected."""
    with pytest.raises(AssertionError, match="nothing is wrong"):
        check(loader, tiny_bundle, [Damage("nothing is wrong", lambda _: None)], tmp_path / "models")


def with_other_tokenizer(kind: str, tiny_bundle: Path, place: Path) -> tuple[Path, list[str]]:
    """Return a copy of the bundle with this kind of tokenizer, and the names of its files."""
    bundle = shutil.copytree(tiny_bundle, place / "bundle")
    if kind == "tokenizers":
        files = {"file": write_bpe(place / "tokenizer.json")}
    elif kind == "marian":
        folder = write_marian(place / kind)
        files = {"file": folder / "source.spm", "vocabulary_file": folder / "vocab.json"}
    else:
        folder = write_m2m100(place / kind)
        files = {"file": folder / "sentencepiece.bpe.model", "vocabulary_file": folder / "vocab.json"}
    return bundle, with_tokenizer(bundle, kind, files)


@pytest.mark.parametrize("number", [10, pytest.param(500, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
@pytest.mark.parametrize("kind", ["tokenizers", "marian", "m2m100"])
def test_damaged_tokenizers(loader: BundleLoader, tiny_bundle: Path, tmp_path: Path, kind: str, number: int) -> None:
    bundle, files = with_other_tokenizer(kind, tiny_bundle, tmp_path)
    kinds = check(loader, bundle, with_right_checksums(files, seed=6, number=number), tmp_path / "models")
    assert number > 10 or kinds["refused"] == 10


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
def test_1500_damages(loader: BundleLoader, tiny_bundle: Path, tmp_path: Path, seed: int) -> None:
    damages = [
        *to_files([*FILES, MANIFEST], seed=100 + seed, num_flips=100),
        *with_right_checksums(FILES, seed=200 + seed, number=1000),
    ]
    check(loader, tiny_bundle, damages, tmp_path / "models")


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_damages_of_a_shipped_bundle(loader: BundleLoader, tmp_path: Path) -> None:
    bundle = REPOSITORY / "models" / "en-hi" / "1"
    files = sorted(Manifest.load(bundle).checksums)
    damages = [*to_files(files, seed=3, num_flips=3), *with_right_checksums(files, seed=4, number=100)]
    check(loader, bundle, damages, tmp_path / "models")


SOME = [
    "encoder.onnx: a pipe",
    "source.model: cut to 0.5",
    "manifest.json: a link to /dev/zero",
    "manifest.json: a pipe",
    "name is '\\x1b[31m'",
    "limits.max_output_tokens is 1e+09",
    "manifest: a number of 5,000 digits",
]


def some() -> list[Damage]:
    known = {each.name: each for each in (*to_files([*FILES, MANIFEST], 1, 0), *to_manifests())}
    return [known[name] for name in SOME]


def test_serve_says_so_and_exits(tiny_models: Path, tmp_path: Path) -> None:
    models = shutil.copytree(tiny_models, tmp_path / "models")
    some()[0].inflict(models / "tiny" / "1")
    ended = dragoman(
        "serve", "--models", str(models), "--port", "0", "--metrics-port", "0", "--admin-port", "0", timeout_seconds=60
    )
    assert ended.returncode == ExitCode.CONFIG, ended
    (line,) = [line for line in ended.stderr.decode().splitlines() if line.startswith("dragoman: ")]
    assert str(models) in line
    assert b"Traceback" not in ended.stderr


def test_nothing_damaged_is_transferred(tiny_models: Path, tmp_path: Path) -> None:
    damages = [each for each in (*to_files([*FILES, MANIFEST], 5, 1), *some()) if not each.may_load]
    for damage in damages:
        source, destination = tmp_path / "source", tmp_path / "destination"
        for folder in (source, destination):  # which keeps whole files for another try
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tiny_models, source)
        damage.inflict(source / "tiny" / "1")
        with pytest.raises((BundleError, OSError)):
            transfer(source, destination)
        assert not (destination / "tiny" / "1").exists(), damage.name
