"""Folders as those who train with Marian publish them: what is recognised in them, and what is refused by name."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from export.importers.imported import CheckpointError
from export.importers.options import ImportOptions
from export.importers.selection import import_checkpoint
from service.bundle.manifest_parts import LanguagePair
from service.text.vocabulary import parse_vocabulary
from tests.export.importers.marian_files.folders import OPUS_VOCABULARY, folder, opus
from tests.export.importers.marian_files.originals import ENGLISH_GERMAN


def test_opus_mt(tmp_path: Path) -> None:
    found = import_checkpoint(opus(tmp_path / "folder"))
    assert (found.name, found.family, found.languages) == ("eng-deu", "Marian", (LanguagePair("eng", "deu"),))
    generation = found.generation
    assert (generation.beam_size, generation.length_penalty, generation.narrows) == (6, 1.0, True)
    assert generation.options == {"max_length_ratio": 3.0}
    assert found.suppressed_ids == (1, 1492)
    assert found.notes == ()
    assert found.tokenizer.files == ("source.spm", "target.spm", "vocab.json")


def test_what_a_decoder_says_counts(tmp_path: Path) -> None:
    said = "beam-size: 12\nnormalize: true\nmax-length-factor: 1.5\nallow-unk: true\n"
    found = import_checkpoint(opus(tmp_path / "folder", said))
    generation = found.generation
    assert (generation.beam_size, generation.length_penalty) == (8, 1.0)
    assert generation.options == {"max_length_ratio": 1.5}
    assert found.suppressed_ids == (1492,)
    assert "beam-size 12; requests have 8 at most" in found.notes[0]


def test_several_targets(tmp_path: Path) -> None:
    directory = opus(tmp_path / "folder")
    text = (directory / OPUS_VOCABULARY).read_text(encoding="utf-8").split("\n")
    text[1481:1483] = ['">>deu<<": 1481', "'>>nld<<': 1482"]
    (directory / OPUS_VOCABULARY).write_text("\n".join(text), encoding="utf-8")
    found = import_checkpoint(directory)
    assert found.languages == (
        LanguagePair("eng", "deu", source_prefix_ids=(1481,)),
        LanguagePair("eng", "nld", source_prefix_ids=(1482,)),
    )
    assert found.name == "folder"
    (dutch,) = import_checkpoint(directory, None, ImportOptions(target_language="nl")).languages
    assert dutch.source_prefix_ids == (1482,)


def test_hplt(tmp_path: Path) -> None:
    found = import_checkpoint(folder(tmp_path / "x", "model.npz=model.npz.best-chrf.npz", "vocab.spm=model.en-de.spm"))
    assert (found.name, found.languages) == ("en-de", (LanguagePair("en", "de"),))
    assert found.tokenizer.file == "model.en-de.spm"


def test_a_folder_of_training_has_more_files(tmp_path: Path) -> None:
    directory = folder(tmp_path / "x", "model.npz", "vocab.spm")
    (directory / "model.npz.optimizer.npz").write_bytes(b"PK")
    (directory / "model.npz.decoder.yml").write_text("models: [model/model.npz]\nbeam-size: 4\nnormalize: 0.6\n")
    found = import_checkpoint(directory, None, ENGLISH_GERMAN)
    assert (found.generation.beam_size, found.generation.length_penalty) == (4, 0.6)


def test_a_decoder_chooses_among_models(tmp_path: Path) -> None:
    directory = folder(tmp_path / "x", "model.npz", "vocab.spm=other.spm", "vocab.spm")
    (directory / "model2.npz").write_bytes(b"PK")
    (directory / "vocab.spm").write_bytes(b"")
    (directory / "decoder.yml").write_text("models: ['C:\\m\\model.npz']\nvocabs: [/a/other.spm, /a/other.spm]\n")
    assert import_checkpoint(directory, None, ENGLISH_GERMAN).tokenizer.file == "other.spm"


@pytest.mark.parametrize("name", ["pieces.vocab", "opus.vocab.json"])
def test_a_vocabulary_may_be_a_list_or_json(tmp_path: Path, name: str) -> None:
    directory = opus(tmp_path / "folder", "beam-size: 1\n")
    expected = pieces(directory)
    (directory / OPUS_VOCABULARY).unlink()
    listed = "".join(f"{piece}\n" for piece in sorted(expected, key=expected.__getitem__))
    (directory / name).write_text(json.dumps(expected) if name.endswith(".json") else listed, encoding="utf-8")
    assert pieces(directory) == expected


def pieces(directory: Path) -> dict[str, int]:
    """Return the vocabulary that a folder's bundle gets."""
    write = import_checkpoint(directory).tokenizer_files["vocab.json"]
    assert not isinstance(write, Path)
    path = directory.parent / "vocab.json"
    write(path)
    return parse_vocabulary(path.read_bytes())


def _decoder(text: str) -> Callable[[Path], object]:
    return lambda directory: (directory / "decoder.yml").write_text(text, encoding="utf-8")


def _pieces(old: str, new: str) -> Callable[[Path], object]:
    def change(directory: Path) -> None:
        path = directory / OPUS_VOCABULARY
        path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_decoder("word-penalty: 0.5"), "decoder.yml: word-penalty is 0.5; supported: 0"),
        (_decoder("models: [a.npz, b.npz]"), "decoder.yml: models are 2, an ensemble; supported: one"),
        (_decoder("models: a.npz"), "decoder.yml: models is 'a.npz', expected a list of files"),
        (_decoder("normalize: much"), "decoder.yml: normalize is 'much', expected a number from 0 to 10"),
        (_decoder("beam-size: .nan"), "decoder.yml: beam-size is '.nan', expected a number"),
        (_decoder("- a"), "decoder.yml: it holds no settings"),
        (_decoder("a: [" * 5000), "decoder.yml: it is not supported YAML"),
        (_decoder(f"vocabs: [{OPUS_VOCABULARY}, source.spm]"), "are vocabularies of different kinds"),
        (_pieces("</s>: 0", "<s>: 0"), "vocab.yml lacks </s>"),
        (_pieces("</s>: 0", "</s>: 7"), "two of its pieces have the same id"),
        (_pieces("</s>: 0", "</s>: 0\n</s>: 5000"), "it has '</s>' twice"),
        (_pieces("</s>: 0", "</s>: none"), "the id of '</s>' is 'none', expected a number"),
        (_pieces("</s>: 0", "{" * 5000), "it is not supported YAML"),
        (_pieces("<unk>: 1", "<unk>: 1\nmore: 5000"), "it has 1492 tokens, opusTC.*vocab.yml has 5001"),
        (lambda directory: (directory / OPUS_VOCABULARY).write_bytes(b"\xff"), "it is not UTF-8 text"),
        (lambda directory: (directory / OPUS_VOCABULARY).write_bytes(b""), "it holds no pieces"),
        (lambda directory: (directory / "target.spm").unlink(), "target.spm, which .* is missing; BPE without it"),
        (lambda directory: (directory / "README.md").unlink(), "tell the source language; give --source-language"),
        (lambda directory: (directory / "a.vocab.yml").write_bytes(b""), "2 files of a vocabulary"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, change: Callable[[Path], object], message: str) -> None:
    directory = opus(tmp_path / "folder", "beam-size: 6")
    change(directory)
    with pytest.raises(CheckpointError, match=message) as caught:
        import_checkpoint(directory)
    assert "\n" not in str(caught.value)


def test_positions_are_its_own(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="--positions is for folders of transformers' Marian"):
        import_checkpoint(opus(tmp_path / "folder"), None, ImportOptions(positions="marian"))
