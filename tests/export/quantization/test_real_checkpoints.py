"""int8 of checkpoints as people store them: bfloat16 in shards, embeddings that are quantized in several parts."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from export.convert import convert
from export.graphs.weights_file import WEIGHTS
from export.quantization import fused_graphs
from export.quantization.weights import BLOCK_COLUMNS
from tests.export.huggingface import checkpoints


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an NLLB folder whose weights are in bfloat16, in two shards."""
    folder = checkpoints.nllb(tmp_path_factory.mktemp("nllb") / "checkpoint")
    weights = {name: value.bfloat16() for name, value in load_file(folder / "model.safetensors").items()}
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    placed: dict[str, str] = {}
    for number, chosen in enumerate((names[::2], names[1::2]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({name: weights[name] for name in chosen}, folder / file, {"format": "pt"})
        placed |= dict.fromkeys(chosen, file)
    index = {"metadata": {}, "weight_map": placed}  # transformers, which int8 is compared with, needs both
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


def test_bfloat16_in_shards_and_large_tables_in_parts(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is converted some rows at a time, as tables of gigabytes are, is what is converted at once."""
    manifest = convert(folder, tmp_path / "whole", precision="int8")
    assert manifest.any_to_any
    assert manifest.verification["int8"]["agreement"] > 0.5
    monkeypatch.setattr(fused_graphs, "_ROWS_AT_ONCE", BLOCK_COLUMNS)
    convert(folder, tmp_path / "parts", precision="int8")
    assert (tmp_path / "parts" / WEIGHTS).read_bytes() == (tmp_path / "whole" / WEIGHTS).read_bytes()
