"""Checkpoints by their names at the hub: its own client against a small hub on loopback."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from click.testing import CliRunner, Result

from export.cli import main
from export.hub import HubName, hub_name, needed_files
from service.bundle.manifest import Manifest
from tests.export.fake_hub import SHA, FakeHub, fake_hub
from tests.export.huggingface.checkpoints import FEW_LAYERS, marian


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = marian(tmp_path_factory.mktemp("hub") / "opus-mt-en-de", **FEW_LAYERS)
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    others = ("pytorch_model.bin", "tf_model.h5", "rust_model.ot", "onnx/encoder_model.onnx", ".gitattributes")
    return {path.name: path.read_bytes() for path in folder.iterdir()} | dict.fromkeys(others, b"x" * 1000)


@pytest.fixture
def hub(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    with fake_hub() as server:
        server.models["Helsinki-NLP/opus-mt-en-de"] = files
        monkeypatch.chdir(tmp_path)
        address = f"{server.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)  # what HF_ENDPOINT sets at import
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", address)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_TELEMETRY", True)
        yield server


def convert(name: str, *said: str) -> Result:
    return CliRunner().invoke(main, ["convert", name, "--output", "out", "--precision", "int8", *said])


def refused(name: str) -> str:
    result = convert(name)
    assert result.exit_code == 2, result.output
    line = result.stderr.splitlines()[-1]
    assert line.startswith("export: ")
    assert not Path("out").exists()
    return line


def test_a_model_is_converted_by_its_name_from_the_files_that_it_needs(hub: FakeHub, files: dict[str, bytes]) -> None:
    result = convert("Helsinki-NLP/opus-mt-en-de")
    assert result.exit_code == 0, result.output
    needed = files.keys() - {"pytorch_model.bin", "tf_model.h5", "rust_model.ot", "onnx/encoder_model.onnx"}
    assert sorted(hub.served) == sorted(needed - {".gitattributes"})
    manifest = Manifest.load(Path("out"))
    assert (manifest.name, manifest.licence) == ("opus-mt-en-de", "cc-by-4.0")
    first = result.stderr.splitlines()[0]
    assert first.startswith(f"Helsinki-NLP/opus-mt-en-de at {SHA}: {len(hub.served)} of {len(files)} files, ")


def test_doctor_and_adapters_take_names_too(hub: FakeHub, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["doctor", "Helsinki-NLP/opus-mt-en-de@v1.0"])
    assert result.exit_code == 0, result.output
    assert "model         opus-mt-en-de: Marian" in result.stdout
    assert "convert Helsinki-NLP/opus-mt-en-de@v1.0 --precision int8 --output models/opus-mt-en-de/1" in result.stdout
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"peft_type": "IA3"}')
    result = CliRunner().invoke(main, ["doctor", "adapter", "--base", "Helsinki-NLP/opus-mt-en-de@v1.0"])
    assert result.exit_code == 1
    assert "peft_type is 'IA3'; only LORA can be merged" in result.stdout


def test_a_folder_here_counts_before_a_name_there(hub: FakeHub) -> None:
    Path("Helsinki-NLP", "opus-mt-en-de").mkdir(parents=True)
    assert refused("Helsinki-NLP/opus-mt-en-de").endswith("it holds no files.")
    assert "no such file or folder" in refused("Helsinki-NLP/opus-mt-de-en")
    assert hub.served == []


def test_what_is_in_the_cache_is_not_downloaded_again(hub: FakeHub) -> None:
    hub.models["a/b"] = {"config.json": b'{"model_type": "t0"}', "model.safetensors": b"w", "README.md": b"r"}
    assert "model_type is 't0'" in refused("a/b")
    assert len(hub.served) == 3
    for name in ("a/b", "a/b@v1.0", "hf://a/b", "https://huggingface.co/a/b/tree/v1.0"):
        assert "model_type is 't0'" in refused(name)
    assert len(hub.served) == 3
    hub.models.clear()
    assert "no public model of this name" in refused("a/b")


def test_without_a_network_the_cache_is_taken(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.models["a/b"] = {"config.json": b'{"model_type": "t0"}', "model.safetensors": b"w"}
    refused("a/b")
    with monkeypatch.context() as context:
        context.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")  # nothing listens there
        result = convert("a/b")
        assert "taking a/b from the cache: " in result.stderr
        assert "model_type is 't0'" in result.stderr
        line = refused("a/c")
    assert line.startswith("export: a/c can't be downloaded: ")
    assert line.endswith("; check the network, or copy the model's files to a folder here and give that.")


def test_what_the_hub_refuses_is_told_in_a_line(hub: FakeHub) -> None:
    assert "there is no folder and no public model of this name" in refused("Helsinki-NLP/opus-mt-en-dee")
    assert "it has no branch, tag or commit 'v9'" in refused("Helsinki-NLP/opus-mt-en-de@v9")
    hub.gated.add("Helsinki-NLP/opus-mt-en-de")
    assert "its owner must allow it: ask on the model's page, then set HF_TOKEN" in refused(
        "Helsinki-NLP/opus-mt-en-de"
    )
    hub.models["a/tf"] = {"config.json": b"{}", "tf_model.h5": b""}
    assert "its weights are tf_model.h5; supported: model.safetensors and pytorch_model.bin" in refused("a/tf")
    assert hub.served == []


def test_without_the_client_a_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    line = refused("Helsinki-NLP/opus-mt-en-de")
    assert "Helsinki-NLP/opus-mt-en-de is not a folder here, and huggingface_hub" in line
    assert "pip install ./client '.[hub]'" in line


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Helsinki-NLP/opus-mt-en-de", HubName("Helsinki-NLP/opus-mt-en-de")),
        ("a/b@refs/pr/1", HubName("a/b", "refs/pr/1")),
        ("hf://t5-small", HubName("t5-small")),
        ("hf://a/b@v1", HubName("a/b", "v1")),
        ("https://huggingface.co/a/b", HubName("a/b")),
        ("https://huggingface.co/a/b/", HubName("a/b")),
        ("https://huggingface.co/a/b/tree/dev", HubName("a/b", "dev")),
        ("https://huggingface.co/a/b/blob/main/config.json?download=true", HubName("a/b", "main")),
        *(
            (path, None)
            for path in ("here/b", "t5-small", "./a/b", "/a/b", "../a", "a/b/c", "a\\b", "https://x.org/a/b")
        ),
    ],
)
def test_names_are_told_from_paths(given: str, expected: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()  # a folder here is a path, even if what is given in it does not exist
    assert hub_name(given) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("model-00001-of-00002.safetensors model.safetensors.index.json pytorch_model.bin spiece.model", "0 1 3"),
        ("pytorch_model-00001-of-00001.bin pytorch_model.bin.index.json tf_model.h5.index.json", "0 1"),
        ("model.bin shared_vocabulary.txt config.json tf_model.h5", "0 1 2"),
        ("adapter_model.safetensors adapter_config.json adapter_model.bin training_args.bin", "0 1"),
        ("opus.npz decoder.yml opus.vocab.yml source.spm LICENSE a/b.npz", "0 1 2 3 4"),
        ("model.safetensors dict.SRC.json model.SRC model.TGT modeling_indictrans.py", "0 1 2 3"),
        ("model.safetensors tokenization_small100.py tokenization_other.py", "0 1"),
        ("config.json tokenizer.json model.gguf", ""),
    ],
)
def test_weights_are_taken_once(names: str, expected: str) -> None:
    every = names.split()
    assert needed_files(every) == sorted(every[int(index)] for index in expected.split())
