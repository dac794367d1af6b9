"""Whichever of the four tables a folder holds, each reader gets the one that transformers would give it."""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM

from export.architecture.transformer import Transformer
from export.importers.imported import CheckpointError
from export.importers.selection import import_checkpoint
from tests.export.folders import edit, problems_of
from tests.export.huggingface.checkpoints import FEW_LAYERS, m2m100, marian, mbart
from tests.export.importers.t5 import checkpoints

SHARED, HEAD = "shared.weight", "lm_head.weight"
ENCODER, DECODER = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
TABLES = (SHARED, ENCODER, DECODER, HEAD)
SUBSETS = [names for count in range(5) for names in itertools.combinations(TABLES, count)]
BART: dict[str, Callable[[Path], Path]] = {
    "marian": lambda folder: marian(folder, **FEW_LAYERS),
    "marian-separate": lambda folder: marian(folder, is_separate=True, **FEW_LAYERS),
    "m2m100": lambda folder: m2m100(folder, share_encoder_decoder_embeddings=False, **FEW_LAYERS),
    "mbart": lambda folder: mbart(folder, **FEW_LAYERS),
}
# With the setting that they are published with; names of weights are without "model.".
T5: dict[str, Callable[[Path], Path]] = {"t5": checkpoints.t5, "mt5": checkpoints.mt5, "umt5": checkpoints.umt5}


@pytest.fixture(scope="module", params=BART)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return BART[request.param](tmp_path_factory.mktemp("tables") / request.param)


def save_tables(folder: Path, tables: dict[str, Tensor]) -> None:
    path = folder / "model.safetensors"
    stored = load_file(path)
    rest = {name: value.clone() for name, value in stored.items() if name.removeprefix("model.") not in TABLES}
    prefix = "model." * any(name.startswith("model.") for name in rest)
    save_file({**rest, **{name if name == HEAD else prefix + name: value for name, value in tables.items()}}, path)


def one_table(folder: Path) -> Tensor:
    weights = load_file(folder / "model.safetensors")
    return next(value for name, value in weights.items() if name.removeprefix("model.") in TABLES)


def read_by_transformers(folder: Path) -> list[Tensor] | None:
    """Return what encoder, decoder and projection read; `None` if one of them is initialized randomly."""
    model, loading = AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    sides = (model.get_encoder(), model.get_decoder())
    read = {ENCODER: sides[0].embed_tokens, DECODER: sides[1].embed_tokens, HEAD: model.lm_head}
    missing = {name.removeprefix("model.") for name in loading["missing_keys"]}
    return None if missing & read.keys() else [module.weight.detach() for module in read.values()]


def read_by_us(folder: Path) -> list[Tensor] | None:
    try:
        model = Transformer.of(import_checkpoint(folder).model)
    except CheckpointError as error:
        if "weight is missing, and " in str(error):
            return None
        raise
    read = (model.encoder.embedding.tokens, model.decoder.embedding.tokens, model.projection)
    return [module.weight for module in read]


@pytest.mark.parametrize(
    ("write", "is_tied"),
    [
        *((write, True) for write in BART.values()),
        (BART["marian"], False),  # the others tie nothing either, whatever they share otherwise
        *(pytest.param(write, False, marks=pytest.mark.full) for name, write in BART.items() if name != "marian"),
        *(pytest.param(write, None, marks=[pytest.mark.full] * (name == "mt5")) for name, write in T5.items()),
    ],
)
def test_each_reads_the_table_that_transformers_gives_it(
    write: Callable[[Path], Path], is_tied: bool | None, tmp_path: Path
) -> None:
    """All 16 subsets of the tables, each with its own numbers: contradictions, too, are resolved as in transformers.

    MADLAD-400 has the last two.
    """
    folder = write(tmp_path / "checkpoint")
    if is_tied is not None:
        edit(folder / "config.json", tie_word_embeddings=is_tied)
    like, num_loaded = one_table(folder), 0
    for names in SUBSETS:
        save_tables(folder, {name: torch.full_like(like, 1.0 + TABLES.index(name)) for name in names})
        expected, given = read_by_transformers(folder), read_by_us(folder)
        assert (given is None) == (expected is None), names
        if expected is not None and given is not None:
            num_loaded += 1
            assert [float(table[5, 5]) for table in given] == [float(table[5, 5]) for table in expected], names
    assert 2 <= num_loaded < len(SUBSETS)


def test_equal_tables_are_kept_once(family: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(family, tmp_path / "checkpoint"))
    table = torch.randn(one_table(folder).shape)
    save_tables(folder, {ENCODER: table.clone(), DECODER: table.clone(), HEAD: table.clone()})
    model = Transformer.of(import_checkpoint(folder).model)
    assert model.projection.weight is model.decoder.embedding.tokens.weight
    is_shared = model.decoder.embedding.tokens.weight is model.encoder.embedding.tokens.weight
    assert is_shared == (family.name != "marian-separate")


def test_a_name_with_and_without_its_prefix_is_refused(family: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(family, tmp_path / "checkpoint"))
    path = folder / "model.safetensors"
    weights = {name: value.clone() for name, value in load_file(path).items()}
    name = "encoder.layers.0.fc1.bias"
    save_file({**weights, name: torch.zeros_like(weights[f"model.{name}"])}, path)
    with pytest.raises(CheckpointError, match=rf"model\.{name} and {name} are one weight"):
        import_checkpoint(folder)


@pytest.mark.parametrize("name", ["tie_word_embeddings", "scale_embedding", "share_encoder_decoder_embeddings"])
def test_choices_are_true_or_false(name: str, tmp_path: Path) -> None:
    folder = BART["marian"](tmp_path / "checkpoint")
    edit(folder / "config.json", **{name: None})
    assert f"{name} is None; expected true or false" in problems_of(folder)
