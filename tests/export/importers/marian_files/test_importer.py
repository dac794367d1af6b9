"""Folders of students: which files they may have, and what is wrong with others."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.marian_files.importer import MAX_STUDENT_TOKENS
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.selection import import_checkpoint
from service.bundle.manifest_parts import LanguagePair
from tests.export.importers.marian_files import folders
from tests.export.importers.marian_files.folders import DATA, container, folder

FILES = ("model.intgemm.alphas.bin=model.ende.intgemm.alphas.bin", "vocab.spm=vocab.ende.spm")
ENGLISH_GERMAN = ImportOptions(source_language="en", target_language="de")


def same(one: ImportedCheckpoint, other: ImportedCheckpoint) -> bool:
    weights, others = one.model.weights, other.model.weights
    return one.tokenizer == other.tokenizer and all(np.array_equal(weights[name], others[name]) for name in weights)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> ImportedCheckpoint:
    return import_checkpoint(folder(tmp_path_factory.mktemp("plain") / "folder", *FILES))


def test_a_folder_is_recognised_and_says_what_it_is(plain: ImportedCheckpoint) -> None:
    assert (plain.name, plain.languages) == ("en-de", (LanguagePair("en", "de"),))
    config = plain.model.config
    assert (config.autoregression, config.d_model, config.num_heads, config.d_ff) == ("ssru", 64, 8, 128)
    assert (plain.tokenizer.eos_id, plain.tokenizer.unk_id, plain.tokenizer.decoder_start_id) == (0, 1, 1000)
    assert plain.suppressed_ids == (1, 1000)
    assert plain.limits.max_source_tokens == MAX_STUDENT_TOKENS
    assert plain.generation.options == {"max_length_ratio": 2.0}
    assert plain.shortlist is None
    assert not plain.model.weights["encoder.embedding.tokens.weight"][1000].any()


def test_compressed_files_are_the_same(plain: ImportedCheckpoint, tmp_path: Path) -> None:
    directory = folder(tmp_path / "folder")
    content = (DATA / "model.intgemm.alphas.bin").read_bytes()
    (directory / "model.ende.intgemm.alphas.bin.zst").write_bytes(zstandard.compress(content))
    (directory / "vocab.ende.spm.gz").write_bytes(gzip.compress((DATA / "vocab.spm").read_bytes()))
    found = import_checkpoint(directory)
    assert same(found, plain)
    write = found.tokenizer_files["vocab.ende.spm"]
    assert not isinstance(write, Path)
    write(tmp_path / "vocabulary")
    assert (tmp_path / "vocabulary").read_bytes() == (DATA / "vocab.spm").read_bytes()


def test_two_vocabularies(plain: ImportedCheckpoint, tmp_path: Path) -> None:
    directory = folder(tmp_path / "folder", "vocab.spm=srcvocab.ende.spm", "vocab.spm=trgvocab.ende.spm")
    arrays = folders.arrays()
    table = arrays.pop("Wemb")
    parameters = {**arrays, "encoder_Wemb": table, "decoder_Wemb": table + np.float32(1.0)}
    changed = {"tied-embeddings-all": False, "tied-embeddings": True}
    data = container([*folders.float_items(parameters), folders.config_item(changed)])
    (directory / "model.ende.bin").write_bytes(data)
    found = import_checkpoint(directory)
    assert (found.tokenizer.file, found.tokenizer.target_file) == ("srcvocab.ende.spm", "trgvocab.ende.spm")
    config = found.model.config
    assert (config.share_embeddings, config.tie_projection) == (False, True)
    target, source = (found.model.weights[f"{side}.embedding.tokens.weight"] for side in ("decoder", "encoder"))
    np.testing.assert_allclose((target - source)[:-1], 1.0, rtol=1e-5)


def test_metadata_names_languages_licence_and_the_model(tmp_path: Path) -> None:
    directory = folder(tmp_path / "folder", "model.intgemm.alphas.bin", "vocab.spm", "lex.bin")
    metadata = {"sourceLanguage": "en", "targetLanguage": "zh_hant", "modelConfig": {}, "hash": "0" * 64}
    (directory / "metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(CheckpointError, match=r"is not the model of metadata\.json"):
        import_checkpoint(directory)
    del metadata["hash"]
    (directory / "metadata.json").write_text(json.dumps(metadata | {"targetLanguage": "zh-Hant"}))
    found = import_checkpoint(directory)
    assert (found.name, found.licence) == ("en-zh-Hant", "MPL-2.0")
    assert found.shortlist is not None
    assert found.shortlist.most(10, 1001) > 100


def test_a_float_archive_is_read(tmp_path: Path) -> None:
    found = import_checkpoint(folder(tmp_path / "folder", "model.npz", "vocab.spm"), None, ENGLISH_GERMAN)
    assert found.model.config.num_decoder_layers == 2


def _settings(**changed: Any) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        renamed = {name.replace("_", "-"): value for name, value in changed.items()}
        items = [*folders.float_items(folders.arrays()), folders.config_item(renamed)]
        (directory / "model.ende.bin").write_bytes(container(items))

    return write


def _parameters(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        arrays = folders.arrays()
        change(arrays)
        (directory / "model.ende.bin").write_bytes(container([*folders.float_items(arrays), folders.config_item()]))

    return write


def _bytes(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        (directory / name).write_bytes(change((directory / name).read_bytes()))

    return write


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda directory: (directory / "vocab.spm").unlink(), "it has no vocabulary"),
        (lambda directory: (directory / "model.ende.bin").unlink(), "it has no model"),
        (lambda directory: (directory / "model.other.bin").write_bytes(b""), "it has 2 files of a model"),
        (lambda directory: (directory / "lex.other.bin").write_bytes(b""), "it has 2 files of a shortlist"),
        (lambda directory: (directory / "model.ende.bin").rename(directory / "model.bin"), "--source-language"),
        (lambda directory: (directory / "metadata.json").write_text("{"), "metadata.json"),
        (_bytes("vocab.spm", lambda data: data[:1000]), "vocab.spm: it is"),
        (_bytes("model.ende.bin", lambda data: data[:-1000]), "cut short"),
        (_bytes("lex.bin", lambda data: data[:-4]), "its head says"),
        (_bytes("lex.bin", lambda data: data[:-9] + b"\1" + data[-8:]), "checksum"),
        (_bytes("lex.bin", lambda data: b"x" + data[1:]), "not a Marian shortlist"),
        (_settings(transformer_decoder_autoreg="average-attention"), r"not average attention \(AAN\)"),
        (_settings(dec_cell="gru"), "with dec-cell 'gru'; supported: 'self-attention', and 'rnn' with 'ssru'"),
        (_settings(type="s2s"), "type is 's2s'; supported: 'transformer', not recurrent networks"),
        (
            _settings(transformer_postprocess="dn"),
            r"transformer-postprocess 'n' without dropout; supported: \('', 'an'",
        ),
        (_settings(transformer_postprocess_top="dan"), "transformer-postprocess-top is 'an' without dropout"),
        (_settings(transformer_ffn_activation="gelu"), "supported: 'relu', 'swish'"),
        (_settings(transformer_tied_layers=[1, 0]), r"transformer-tied-layers is \[1, 0\], expected numbers"),
        (_settings(transformer_tied_layers=[1]), "transformer-tied-layers has 1 layer, dec-depth is 2"),
        (_parameters(lambda arrays: arrays.update(Wpos=arrays["Wemb"])), "learned positions, Wpos"),
        (_settings(transformer_heads=7), "not a multiple of num_heads 7"),
        (_settings(dim_emb="many"), "dim-emb is 'many', expected a number"),
        (_settings(dec_depth=3), "decoder.layers.2"),
        (_parameters(lambda arrays: arrays.update(Wemb=arrays["Wemb"][:-1])), "1000"),
        (_parameters(lambda arrays: arrays.update(odd=np.ones((2, 2)))), "'odd' is a parameter"),
        (_parameters(lambda arrays: arrays.update(decoder_Wemb=arrays["Wemb"])), "embeddings are"),
        (_parameters(lambda arrays: arrays["encoder_l1_self_Wq"].fill(np.nan)), "NaN"),
        (_parameters(lambda arrays: arrays.pop("decoder_l1_rnn_Wf")), "gate.weight is missing"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, change: Callable[[Path], object], message: str) -> None:
    directory = folder(tmp_path / "folder", "vocab.spm", "lex.bin")
    _settings()(directory)
    change(directory)
    with pytest.raises(CheckpointError, match=message) as caught:
        import_checkpoint(directory, "marian-files", NOTHING_SAID)
    assert "\n" not in str(caught.value)


def test_a_decompressed_file_may_not_be_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("export.importers.marian_files.importer._MOST_MODEL_BYTES", 10**5)
    directory = folder(tmp_path / "folder", "vocab.spm=vocab.ende.spm")
    (directory / "model.ende.bin.gz").write_bytes(gzip.compress(bytes(10**6)))
    with pytest.raises(CheckpointError, match="unpacks to more than 100000 bytes"):
        import_checkpoint(directory)
