"""What people do wrong at first: each mistake is one line, without a traceback, and says what to do."""

import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from export.cli import main
from tests.export.folders import edit
from tests.export.huggingface.checkpoints import FEW_LAYERS, marian

LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 310000000\n"
Mistake = Callable[[Path], Any]  # makes it in a copy of a good folder; may return other arguments, CHECKPOINT first


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return marian(tmp_path_factory.mktemp("good") / "opus-mt-en-de", **FEW_LAYERS)


def keep_only(folder: Path, *names: str) -> None:
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink()


def write(folder: Path, **files: Any) -> None:
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def pack(folder: Path) -> list[str]:
    with zipfile.ZipFile(folder.parent / "model.zip", "w") as archive:
        archive.write(folder / "config.json")
    return [str(folder.parent / "model.zip")]


def save_with_torch(*, is_zip: bool) -> Mistake:
    def save(folder: Path) -> list[str]:
        path = folder / "a_rather_long_name_of_a_checkpoint_that_its_zip_begins_with.pt"
        torch.save({"weight": torch.zeros(2)}, path, _use_new_zipfile_serialization=is_zip)
        return [str(path)]

    return save


def hold_gguf(folder: Path) -> list[str]:
    (folder / "model.gguf").write_bytes(b"GGUF\x03\0\0\0")
    return [str(folder / "model.gguf")]


def lack_a_shard(folder: Path) -> None:
    first, second = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    (folder / "model.safetensors").rename(folder / first)
    write(folder, model__safetensors__index__json={"weight_map": {"a": first, "b": second}})


def replace_weights(name: str) -> Mistake:
    def mistake(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / name)

    return mistake


def write_file_as_parent(folder: Path) -> list[str]:
    (folder.parent / "disk").write_text("")
    return [str(folder), "--output", str(folder.parent / "disk" / "1")]


def write_where_nobody_may(folder: Path) -> list[str]:
    return [str(folder), "--output", "/proc/dragoman/1"]  # even root can't create a folder there


def be_a_sentence_transformer(folder: Path) -> None:
    edit(folder / "config.json", model_type="bert", architectures=["BertModel"])
    write(folder, modules__json="[]")


def be_a_bundle(folder: Path) -> None:
    keep_only(folder)
    write(folder, manifest__json={}, encoder__onnx="")


MISTAKES: dict[str, tuple[Mistake, str]] = {
    "a path with a typing error": (
        lambda folder: [str(folder.with_name("opus-mt-en-dd"))],
        "there is no such file or folder; nearest is .*opus-mt-en-de",
    ),
    "a path that leads nowhere": (
        lambda folder: [str(folder / "a" / "b")],
        "no such file or folder, nor .*/a; check the path",
    ),
    "a file instead of its folder": (
        lambda folder: [str(folder / "model.safetensors")],
        "it is a file; give its folder, .*opus-mt-en-de, which must hold",
    ),
    "an empty folder": (keep_only, "it holds no files"),
    "a folder of folders": (
        lambda folder: [str(folder.parent)],
        r"it holds only folders \(opus-mt-en-de\): give one of them, or --all",
    ),
    "an archive": (pack, "it is a zip archive; unpack it and give the folder"),
    "a file of torch": (
        save_with_torch(is_zip=True),
        "it is a file of torch; if it is a bare state dict, give it with",
    ),
    "an old file of torch": (save_with_torch(is_zip=False), "it is a file of torch; if it is a bare state dict, give"),
    "OpenNMT-py's settings": (
        lambda folder: write(folder, config__json={"src_vocab": "a", "rnn_size": 512, "save_model": "b"}),
        r"config\.json: it has no model_type, and rnn_size, src_vocab as OpenNMT-py's .*; CTranslate2's ct2-open",
    ),
    "settings of nobody": (
        lambda folder: write(folder, config__json={"bos_token": "<s>"}),
        r"config\.json: it has no model_type, as transformers' have, nor source_vocabulary_size, as our own format's",
    ),
    "a GGUF file": (hold_gguf, r"it is a file of llama\.cpp, whose weights .*; give the folder that it was made from"),
    "pointers of git-lfs": (
        lambda folder: write(folder, model__safetensors=LFS, source__spm=LFS),
        r"model\.safetensors, source\.spm are pointers of git-lfs .* run 'git lfs install' and 'git lfs pull'",
    ),
    "a part of a download": (
        replace_weights("model.safetensors.incomplete"),
        r"model\.safetensors\.incomplete are incomplete downloads; download them again",
    ),
    "a truncated download": (truncate, r"weights: model\.safetensors is damaged, truncated or .*; download it again"),
    "an index without a shard": (lack_a_shard, " model-00002-of-00002.safetensors missing, .*; download all"),
    "TensorFlow's weights only": (
        replace_weights("tf_model.h5"),
        r"TensorFlow \(tf_model\.h5\): take model\.saf",
    ),
    "Flax' weights only": (replace_weights("flax_model.msgpack"), r"Flax \(flax_model\.msgpack\): take model\.saf"),
    "a model in ONNX": (replace_weights("encoder_model.onnx"), r"in ONNX \(encoder_model\.onnx\): .* take the folder"),
    "no weights": (
        lambda folder: (folder / "model.safetensors").unlink(),
        "weights: no weights; expected model.safetensors or",
    ),
    "a tokenizer only": (
        lambda folder: keep_only(folder, "source.spm", "vocab.json"),
        r"it holds a tokenizer \(source\.spm\): add config\.json and weights of its model",
    ),
    "no tokenizer": (
        lambda folder: keep_only(folder, "config.json", "generation_config.json", "model.safetensors"),
        r"tokenizer: source\.spm: it is missing; .*vocab\.json: it is missing",
    ),
    "embeddings of sentences": (
        be_a_sentence_transformer,
        r"it makes embeddings of sentences \(sentence-transformers\), .*; give a translation model",
    ),
    "a base for no adapter": (
        lambda folder: [str(folder), "--base", str(folder)],
        r"--base is for PEFT adapters, and this folder has no adapter_config\.json; leave it out",
    ),
    "another kind with --from": (
        lambda folder: [str(folder), "--from", "m2m100"],
        r"--from m2m100: config\.json says that it is 'marian'; leave out --from",
    ),
    "a language that it has not": (
        lambda folder: [str(marian(folder.parent / "many", ("deu", "nld"))), "--target-language", "German"],
        "--target-language is 'German', none of the model's 2 languages; did you mean deu",
    ),
    "an output inside the checkpoint": (
        lambda folder: [str(folder), "--output", str(folder / "out")],
        "out is inside .*opus-mt-en-de; choose another --output",
    ),
    "an output below a file": (write_file_as_parent, "can't be a folder, as .*disk is a file; choose another --output"),
    "an output where nobody may write": (
        write_where_nobody_may,
        "/proc/dragoman/1 can't be written .*; choose another",
    ),
    "a bundle that is converted already": (be_a_bundle, "a bundle of Dragoman .* 'dragoman serve --models' serves it"),
}


@pytest.mark.parametrize(("mistake", "message"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_one_line(good: Path, tmp_path: Path, mistake: Mistake, message: str) -> None:
    folder = Path(shutil.copytree(good, tmp_path / "given" / good.name))
    given = mistake(folder) or [str(folder)]
    if "--output" not in given:
        given += ["--output", str(tmp_path / "out")]
    before = sorted(tmp_path.rglob("*"))
    result = CliRunner().invoke(main, ["convert", *given])
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit)
    (line,) = result.stderr.splitlines()
    assert re.search(message, line), line
    assert line.startswith("export: ")
    assert line.endswith(".")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_may_not_be_read(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root, as which tests may run, may read everything."""
    folder, listed = Path(shutil.copytree(good, tmp_path / good.name)), Path.iterdir

    def refuse(self: Path) -> Iterator[Path]:
        if self == folder:
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(self)

    monkeypatch.setattr(Path, "iterdir", refuse)
    result = CliRunner().invoke(main, ["convert", str(folder), "--output", str(tmp_path / "out")])
    reason = f"[Errno 13] Permission denied: '{folder}'"
    assert result.exit_code == 2
    assert result.stderr == f"export: {folder} can't be read ({reason}); change its permissions.\n"
