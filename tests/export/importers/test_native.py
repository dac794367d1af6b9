"""Our own checkpoints: the table of their weights in the documentation, and the tokenizers that they may have."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from export.architecture import ModelConfig
from export.architecture.config import PositionConfig, RelativeBiasConfig
from export.architecture.stored import weight_shapes
from export.importers.imported import CheckpointError
from export.importers.native.folder import TOKENIZER_NAME, TOKENIZERS
from export.importers.native.importer import import_native
from export.importers.word_tokenizer import WordOptions, read_word_tokenizer
from service.text.tokenizers import load_tokenizer
from tests.export.tiny_checkpoint import VOCABULARY_SIZE, write_tiny_checkpoint
from tests.servers import REPOSITORY

SIZES: dict[str, Any] = {"source_vocabulary_size": 30, "target_vocabulary_size": 20, "d_model": 16, "d_ff": 24}
SIZES |= {"decoder_d_ff": 26, "num_heads": 2, "d_head": 5, "num_encoder_layers": 2, "num_decoder_layers": 3}
SIZES |= {"max_source_positions": 40, "max_target_positions": 50}
CONFIGS = {
    "plain": ModelConfig(**SIZES),
    "learned positions and norms": ModelConfig(
        **SIZES, positions=PositionConfig("learned"), embedding_norm=True, final_norm=True, layer_norm="scalar"
    ),
    "T5": ModelConfig(
        **SIZES,
        relative_bias=RelativeBiasConfig(8, 20, per_layer=True),
        gated=True,
        layer_norm="rms",
        tie_projection=True,
    ),
    "SSRU": ModelConfig(**SIZES, autoregression="ssru", projection_bias=True, attention_output="unbiased"),
}


def table() -> dict[str, str]:
    """Return the shape of each weight by the pattern of its name, as docs/bundles.md has them."""
    text = (REPOSITORY / "docs" / "bundles.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`(?:embedding|layers|relative)[^|]*) \| ([^|]+) \|", text, re.M)
    return {name: shape for names, shape in rows for name in re.findall("`([^`]+)`", names)}


def pattern(name: str) -> str:
    """Return the expression of a row's name."""
    written = re.escape(name).replace(r"\.N\.", r"\.\d+\.").replace(r"\*", "(weight|bias|gain)")
    return re.sub(r"\\\{([\w,]+)\\\}", lambda found: f"({found[1].replace(',', '|')})", written)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_documentation_has_every_weight_and_its_shape(name: str) -> None:
    config, rows, seen = CONFIGS[name], table(), set()
    for full_name, shape in weight_shapes(config).items():
        side, _, weight = full_name.replace("cross_attention", "self_attention").partition(".")
        if side == "projection":
            assert shape == ((20, 16) if weight == "weight" else (20,))
            continue
        matching = [row for row in rows if re.fullmatch(pattern(row), weight)]
        assert len(matching) == 1, full_name
        seen.add(matching[0])
        decodes = side == "decoder"
        values = {"s": 30, "t": 20, "d": 16, "a": 10, "f": 26 if decodes else 24, "p": 50 if decodes else 40, "k": 8}
        written = rows[matching[0]].replace("`num_heads`", "2")
        if written == "norm":
            assert shape == ((1,) if config.layer_norm == "scalar" else (16,))
            continue
        choices = [re.findall(r"\w+", each) for each in re.findall(r"\(([^)]+)\)", written)]
        shapes = [tuple(values[each] if each in values else int(each) for each in choice) for choice in choices]
        assert shape == shapes[-1 if decodes else 0], full_name
    assert len(seen) > 8


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("native") / "tiny")


@pytest.mark.parametrize("names", TOKENIZERS)
def test_tokenizers_of_any_kind_for_one_side_or_both(names: tuple[str, ...], tiny: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny, tmp_path / "copy"))
    model = (folder / TOKENIZER_NAME).rename(tmp_path / TOKENIZER_NAME)
    config = import_native(tiny).model.config
    words = [f"w{index}" for index in range(VOCABULARY_SIZE)]
    words[config.unk_id], words[config.pad_id], words[config.eos_id] = "<unk>", "<pad>", "</s>"
    listed = tmp_path / "words.txt"
    for number, name in enumerate(names):
        if name.endswith(".model"):
            shutil.copyfile(model, folder / name)
            continue
        listed.write_text("\n".join(words).replace("w", "wv"[number]), encoding="utf-8")
        read_word_tokenizer(listed, WordOptions(split="whitespace")).write(folder / name)
    imported = import_native(folder)
    assert tuple(imported.tokenizer_files) == names
    tokenizer = load_tokenizer(imported.tokenizer, folder)
    if names[0].endswith(".json"):
        assert tokenizer.encode("w20 w30") == [20, 30]
        assert tokenizer.decode([20, config.eos_id, 30]) == ("w20 w30" if len(names) == 1 else "v20 v30")
        listed.write_text("\n".join(words[:-1]), encoding="utf-8")
        read_word_tokenizer(listed, WordOptions(split="whitespace")).write(folder / names[-1])
        with pytest.raises(CheckpointError, match=f"{names[-1]} has {VOCABULARY_SIZE - 1} pieces"):
            import_native(folder)
    else:
        assert tokenizer.decode(tokenizer.encode("Save the file.")) == "Save the file."
        assert len(imported.tokenizer.reserved_symbols) == 4
