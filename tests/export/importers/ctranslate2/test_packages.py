"""Packages of Argos Translate: as files, unpacked, many at once, and such as nobody should open."""

import copy
import json
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from export.cli import main
from export.convert import convert
from export.importers.imported import CheckpointError, Row
from export.importers.options import ImportOptions
from export.importers.selection import import_checkpoint
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import GenerationDefaults, LanguagePair
from service.text.tokenizers import load_tokenizer
from tests.export.importers.ctranslate2 import model_files
from tests.export.importers.ctranslate2.greedy import greedy
from tests.export.importers.ctranslate2.test_importer import same
from tests.export.importers.ctranslate2.variants import UNK_ID, model_of, tokens, weights_of, write_folder
from tests.export.random_sentences import random_sentences

METADATA = {
    "package_version": "1.9",
    "argos_version": "1.9",
    "from_code": "en",
    "from_name": "English",
    "to_code": "de",
    "to_name": "German",
}
CARD = "---\nlicense: cc0-1.0\n---\nTrained on OPUS."


def unpacked(directory: Path, name: str = "pre", **metadata: Any) -> Path:
    """Write a package's folder, as Argos Translate unpacks it."""
    folder = write_folder(directory / "model", name)
    (folder / "sentencepiece.model").rename(directory / "sentencepiece.model")
    (directory / "metadata.json").write_text(json.dumps(METADATA | metadata), "utf-8")
    (directory / "README.md").write_text(CARD, "utf-8")
    (directory / "stanza" / "en").mkdir(parents=True)
    (directory / "stanza" / "resources.json").write_text("{")
    (directory / "stanza" / "en" / "model.pt").write_bytes(b"no pickle")
    return directory


def packed(folder: Path, path: Path, top: str = "translate-en_de-1_9") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in sorted(folder.rglob("*")):
            archive.write(each, f"{top}/{each.relative_to(folder).as_posix()}")
    return path


def test_a_package_as_a_file_and_as_a_folder(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "package")
    package = packed(folder, tmp_path / "translate-en_de-1_9.argosmodel")
    found, other = import_checkpoint(package), import_checkpoint(folder)
    assert found.name == other.name == "en-de"
    assert found.languages == other.languages == (LanguagePair("en", "de"),)
    assert found.licence == other.licence == "cc0-1.0"
    assert found.generation == GenerationDefaults(beam_size=4, length_penalty=0.2, stops_early=True)
    assert found.tokenizer == other.tokenizer
    assert found.checkpoint_sha256 == other.checkpoint_sha256
    assert same(found.model.weights, weights_of("pre"))
    assert same(other.model.weights, weights_of("pre"))


def test_a_package_translates_as_ctranslate2_without_unknown_tokens(tmp_path: Path) -> None:
    """Argos Translate never shows these: it puts a word of the source in their place."""
    package = packed(unpacked(tmp_path / "package"), tmp_path / "any.argosmodel")
    checkpoint = import_checkpoint(package)
    assert (checkpoint.suppressed_ids, checkpoint.renormalizes) == ((UNK_ID,), True)
    model = copy.deepcopy(model_of("pre"))
    with torch.no_grad():  # without this, the unknown token would be said by most outputs
        table = model.encoder.embedding.tokens.weight
        table[UNK_ID] = 9 * table[20]
    written = model_files.variables_of(model) | model_files.flags_of(model)
    folder = tmp_path / "package"
    variables, aliases = model_files.aliased(written)
    (folder / "model" / "model.bin").write_bytes(model_files.container(variables, aliases))
    checkpoint = import_checkpoint(packed(folder, tmp_path / "other.argosmodel"))
    rows = [Row(each.source_ids, ()) for each in random_sentences(checkpoint, 20)]
    assert checkpoint.open_reference is not None
    with checkpoint.open_reference() as reference:
        expected = reference.generate(rows, 1, 24)
    assert greedy(checkpoint, rows, 24) == expected
    assert UNK_ID not in {index for output in expected for index in output}
    options = ImportOptions("en", "de", tokenizer=folder / "sentencepiece.model")
    plain = greedy(import_checkpoint(folder / "model", None, options), rows, 24)
    assert UNK_ID in {index for output in plain for index in output}  # a positive control


def test_a_translation_may_begin_with_a_token(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "package", target_prefix=tokens()[30])
    checkpoint = import_checkpoint(folder)
    assert checkpoint.languages == (LanguagePair("en", "de", (), (30,)),)
    rows = [Row(each.source_ids, (30,)) for each in random_sentences(checkpoint, 20)]
    assert checkpoint.open_reference is not None
    with checkpoint.open_reference() as reference:
        expected = reference.generate(rows, 1, 24)
    assert greedy(checkpoint, rows, 24) == expected
    with pytest.raises(CheckpointError, match="target_prefix is '__zz__', which is not in"):
        import_checkpoint(unpacked(tmp_path / "other", target_prefix="__zz__"))


def test_the_tokenizer_is_that_of_argos(tmp_path: Path) -> None:
    import sentencepiece

    from tests.nasty_texts import NASTY_TEXTS

    folder = unpacked(tmp_path / "package")
    found = import_checkpoint(folder)
    for name, write in found.tokenizer_files.items():
        assert not isinstance(write, Path)
        write(tmp_path / name)
    ours = load_tokenizer(found.tokenizer, tmp_path)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    known_tokens = tokens()
    vocabulary = {token: index for index, token in enumerate(known_tokens)}
    for text in NASTY_TEXTS:
        pieces = theirs.encode(text, out_type=str)
        ids = [vocabulary.get(piece, UNK_ID) for piece in pieces]
        assert ours.encode(text) == ids, text
        known = [index for index in ids if index >= 4]
        joined = "".join(known_tokens[index] for index in known).replace("▁", " ")
        assert ours.decode(known) == joined.strip(" "), text


def test_all_packages_become_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and folders alike; what can't be converted is named, and the others are written."""
    packages = tmp_path / "packages"
    packages.mkdir()
    one = unpacked(packages / "en_de")
    packed(one, packages / "translate-en_de.argosmodel")
    packed(unpacked(tmp_path / "bad", from_code=7), packages / "bad.argosmodel")
    (packages / "index.json").write_text("[]")
    written = []

    def write(source: Path, destination: Path, *_: Any, **_flags: Any) -> None:
        written.append((import_checkpoint(source).name, destination.relative_to(tmp_path / "out").as_posix()))

    monkeypatch.setattr("export.convert.convert", write)
    result = CliRunner().invoke(main, ["convert", str(packages), "--all", "--output", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert written == [("en-de", "en_de/1"), ("en-de", "translate-en_de/1")]
    assert "bad.argosmodel can't be converted: nothing in it names the source language" in result.stderr
    assert "converted 2 of 3 checkpoints" in result.stderr


@pytest.mark.full
def test_a_package_becomes_a_bundle(tmp_path: Path) -> None:
    package = packed(unpacked(tmp_path / "package"), tmp_path / "any.argosmodel")
    convert(package, tmp_path / "bundle", precision="int8")
    manifest = Manifest.load(tmp_path / "bundle")
    assert (manifest.name, manifest.generation.beam_size, manifest.licence) == ("en-de", 4, "cc0-1.0")


def _zip(*entries: tuple[str, bytes]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in entries:
                    archive.writestr(name, content)

    return write


_NAMED = json.dumps(METADATA).encode()
_MODEL = model_files.container({})


def _encrypted(path: Path) -> None:
    _zip(("a/metadata.json", _NAMED), ("a/model/model.bin", _MODEL))(path)
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        place = -1
        while (place := data.find(mark, place + 1)) >= 0:
            data[place + offset] |= 1
    path.write_bytes(data)


def _damaged(path: Path) -> None:
    _zip(("a/metadata.json", _NAMED), ("a/model/model.bin", _MODEL + bytes(range(256)) * 9))(path)
    data = path.read_bytes()
    place = data.find(b"model.bin") + 30
    path.write_bytes(data[:place] + bytes(20) + data[place + 20 :])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_bytes(b"PK"), "it is not a zip file"),
        (_zip(), "it has 0 folders with a metadata.json"),
        (_zip(("a/metadata.json", b"{}"), ("b/metadata.json", b"{}")), "it has 2 folders with a metadata.json"),
        (_zip(("a/b/metadata.json", b"{}")), "it has 0 folders with a metadata.json"),
        (_zip(("metadata.json", b"{}"), ("model/model.bin", b"")), "it has 0 folders with a metadata.json"),
        (_zip(("a/metadata.json", b"{}")), "model.bin: it is missing"),
        (_zip(("a/metadata.json", b"["), ("a/model/model.bin", _MODEL)), "metadata.json: "),
        (_zip(("a/metadata.json", _NAMED), ("a/model/../../model.bin", _MODEL)), "model.bin: it is missing"),
        (_zip(("a/metadata.json", _NAMED), ("a/model/model.bin", bytes(10**6))), "it begins with version 0"),
        (_encrypted, "is encrypted"),
        (_damaged, "or it is damaged: Bad CRC-32"),
    ],
)
def test_files_that_nobody_should_open(write: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    package = tmp_path / "any.argosmodel"
    write(package)
    with pytest.raises(CheckpointError, match=message) as caught:
        import_checkpoint(package, None, ImportOptions())
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["any.argosmodel"]


def test_a_file_that_grows_without_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("export.importers.stored_file.MAX_WEIGHTS_BYTES", 10**6)
    package = tmp_path / "any.argosmodel"
    _zip(("a/metadata.json", _NAMED), ("a/model/model.bin", struct.pack("<I", 6) + bytes(2 * 10**6)))(package)
    with pytest.raises(CheckpointError, match="bytes; allowed: 1000000"):
        import_checkpoint(package)
