"""`python -m export shortlist`: lists of what a bundle translates texts to, or of a lexicon."""

import dataclasses
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from export.cli import main
from export.convert import convert
from export.importers.options import ImportOptions
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Graphs
from tests.export.importers.marian_files.folders import DATA, folder

ENGLISH_GERMAN = ImportOptions(source_language="en", target_language="de")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = folder(tmp_path_factory.mktemp("student") / "folder", "model.intgemm8.bin", "vocab.spm")
    convert(source, source.parent / "bundle", precision="int8", options=ENGLISH_GERMAN)
    return source.parent / "bundle"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["shortlist", *map(str, arguments)])


def test_lists_of_texts(bundle: Path, tmp_path: Path) -> None:
    check = tmp_path / "check.tsv"
    check.write_text("The pigs are coming!\tDie Schweine kommen!\n\nLet's go.\tLos.\n")
    done = run(bundle, "-o", tmp_path / "out", "--texts", DATA / "t300.en", "--best", 20, "--check", check)
    assert done.exit_code == 0, done.output
    assert "of 2 texts have the same translation with shortlists; BLEU" in done.output
    before, after = Manifest.load(bundle), Manifest.load(tmp_path / "out")
    assert (before.model.shortlist_size, after.model.shortlist_size) == (0, 1001)
    assert after.verification["shortlist"]["num_texts"] == 2
    assert after.checksums != before.checksums
    assert (
        "shortlist     up to 1001 tokens of a source; "
        in CliRunner().invoke(main, ["inspect", str(tmp_path / "out")]).output
    )
    again = run(tmp_path / "out", "-o", tmp_path / "twice", "--texts", DATA / "t300.en")
    assert (again.exit_code, "has a shortlist already" in again.output) == (2, True)
    assert not (tmp_path / "twice").exists()


def test_a_binary_lexicon_is_what_the_importer_takes(bundle: Path, tmp_path: Path) -> None:
    assert run(bundle, "-o", tmp_path / "out", "--lexicon", DATA / "lex.bin").exit_code == 0
    source = folder(tmp_path / "folder", "model.intgemm8.bin", "vocab.spm", "lex.bin")
    expected = convert(source, tmp_path / "converted", precision="int8", options=ENGLISH_GERMAN)
    assert Manifest.load(tmp_path / "out").golden == expected.golden
    assert expected.golden != Manifest.load(bundle).golden


def test_a_lexicon_in_text(bundle: Path, tmp_path: Path) -> None:
    lexicon = tmp_path / "lex.s2t"
    lexicon.write_text("▁die ▁the 0.7\n▁der ▁the 0.2\nnopiece ▁the 0.1\n")
    assert run(bundle, "-o", tmp_path / "out", "--lexicon", lexicon, "--best", 1).exit_code == 0
    assert Manifest.load(tmp_path / "out").model.shortlist_size == 3 + 128 * 2 + 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either --texts or --lexicon"),
        (["--texts", "short", "--lexicon", "strange"], "give either --texts or --lexicon"),
        (["--texts", "missing"], "does not exist"),
        (["--lexicon", "short"], "line 1: expected a target piece, a source piece, a number"),
        (["--lexicon", "strange"], "has no pieces of this bundle"),
        (["--lexicon", "lex.bin"], "not a Marian shortlist"),
        (["--texts", "short", "--check", "short"], "a line without a tab"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short").write_text("▁die ▁the\n")
    Path("strange").write_text("xyzxyz qwqwqw 0.5\n")
    Path("lex.bin").write_bytes(b"nothing")
    done = run(bundle, "-o", "out", *arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert not Path("out").exists()


def test_a_plain_bundle_is_made_one_of_its_own_translations(exported: tuple[Path, Manifest], tmp_path: Path) -> None:
    """What a bundle translates texts to, it translates them to again, from few tokens."""
    directory, manifest = exported
    texts = tmp_path / "texts"
    texts.write_text("\n".join(golden.text for golden in manifest.golden))
    done = run(directory, "-o", tmp_path / "out", "--texts", texts, "--first", 0, "--best", 1000)
    assert done.exit_code == 0, done.output
    counted = re.search(r"lists of (\d+) tokens, (\d+) ids", done.output)
    assert counted is not None
    assert 0 < int(counted[2]) < int(counted[1])
    assert f"100.0% of {len(manifest.golden)} texts have the same translation" in done.output
    written = Manifest.load(tmp_path / "out")
    assert written.golden == manifest.golden
    assert written.model.shortlist_size > 0


def test_without_alignments_there_is_nothing_to_count(exported: tuple[Path, Manifest], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(exported[0], tmp_path / "bundle"))
    dataclasses.replace(exported[1], graphs=Graphs()).save(directory)
    done = run(directory, "-o", tmp_path / "out", "--texts", DATA / "t300.en")
    assert (done.exit_code, "it returns no alignments" in done.output) == (2, True)
