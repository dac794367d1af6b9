"""Each choice on its own: the imported model gives the logits of a reading that makes the same choice."""

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from export.architecture.transformer import Transformer
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.state_dict.importer import import_state_dict
from tests.export.importers.state_dict.checkpoints import SIZES, Notebook, make, random_sources
from tests.export.importers.state_dict.readings import (
    Attention000,
    Attention001,
    Attention002,
    Attention003,
    Attention004,
    Choices,
    FusedAttention,
    ScalarNorm,
)

WIDTH = SIZES.d_model
PARALLEL, COMPILED = "module.", "_orig_mod."  # what DataParallel and torch.compile put before names


def separate() -> nn.Module:
    return Attention002(WIDTH, 2)


class ByWidth(Attention002):
    """Scores divided by the root of the model's width."""

    def scale(self) -> float:
        return math.sqrt(WIDTH)


PLAIN = Choices(separate)
OPTIONS: dict[str, Callable[[], Notebook]] = {
    "plain": lambda: make(PLAIN),
    "fused": lambda: make(Choices(lambda: FusedAttention(WIDTH, 2)), attention="fused"),
    "fused with an output layer": lambda: make(
        Choices(lambda: FusedAttention(WIDTH, 2, output=True)), attention="fused"
    ),
    "packed without biases": lambda: make(Choices(lambda: Attention001(WIDTH, 2, bias=False)), attention="packed"),
    "packed with an output layer": lambda: make(
        Choices(lambda: Attention001(WIDTH, 2, output=True)), attention="packed"
    ),
    "no biases": lambda: make(Choices(lambda: Attention000(WIDTH, 2, bias=False, output_bias=False))),
    "an output without bias": lambda: make(Choices(lambda: Attention000(WIDTH, 2, output_bias=False))),
    "a biased output only": lambda: make(Choices(lambda: Attention000(WIDTH, 2, bias=False))),
    "004's attention in 002's block": lambda: make(Choices(lambda: Attention004(WIDTH, 2)), score_scale="model"),
    "four heads of their own": lambda: make(Choices(lambda: Attention003(WIDTH, 4)), replace(SIZES, num_heads=4)),
    "score scale of the model": lambda: make(Choices(lambda: ByWidth(WIDTH, 2)), score_scale="model"),
    "no final norm": lambda: make(replace(PLAIN, final_norm=False)),
    "norm before": lambda: make(replace(PLAIN, pre_norm=True)),
    "norms with a gain per component": lambda: make(replace(PLAIN, norm=lambda: nn.LayerNorm(WIDTH))),
    "another epsilon, inside the root": lambda: make(
        replace(PLAIN, norm=lambda: nn.LayerNorm(WIDTH, eps=0.5)), layer_norm_epsilon=0.5
    ),
    "another epsilon, outside the root": lambda: make(
        replace(PLAIN, norm=lambda: ScalarNorm(0.5)), layer_norm_epsilon=0.5
    ),
    "without the ReLU": lambda: make(replace(PLAIN, activation=lambda x: x), activation="identity"),
    "another activation": lambda: make(replace(PLAIN, activation=nn.functional.gelu), activation="gelu"),
    "base 10000": lambda: make(replace(PLAIN, base=10000.0)),
    "exponents as written": lambda: make(replace(PLAIN, has_brackets=False)),
    "positions said, too": lambda: make(
        replace(PLAIN, has_brackets=False), positions={"base": 1000, "cosine_exponent": "unbracketed"}
    ),
    "positions said only": lambda: make(replace(PLAIN, has_tables=False), positions={"base": 1000}),
    "embeddings as they are": lambda: make(replace(PLAIN, scale_embeddings=False), scale_embeddings=False),
    "tied projection": lambda: make(replace(PLAIN, is_tied=True)),
    "tied projection without bias": lambda: make(replace(PLAIN, is_tied=True, projection_bias=False)),
    "free projection without bias": lambda: make(replace(PLAIN, projection_bias=False)),
    "feed-forward layers that differ in width": lambda: make(PLAIN, replace(SIZES, d_ff=21, decoder_d_ff=38)),
    "layers that differ in number": lambda: make(PLAIN, replace(SIZES, num_encoder_layers=3, num_decoder_layers=1)),
}


def difference(notebook: Notebook, imported: ImportedCheckpoint) -> float:
    """Return the largest difference between the logits."""
    source = torch.tensor(random_sources([9, 9, 9]))
    target = torch.randint(4, SIZES.target_vocabulary_size, (3, 11), generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        return float((Transformer.of(imported.model)(source, target) - notebook.model(source, target)).abs().max())


@pytest.mark.parametrize("name", OPTIONS)
def test_logits(name: str, tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    notebook = OPTIONS[name]().write(tmp_path / "saved", tokenizers)
    assert difference(notebook, import_state_dict(notebook.path, notebook.options)) < 1e-4


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plain", {"activation": "identity"}),
        ("plain", {"score_scale": "model"}),
        ("plain", {"norm": "pre"}),
        ("plain", {"scale_embeddings": False}),
        ("plain", {"layer_norm_epsilon": 0.5}),
        ("fused", {"attention": "packed"}),
        ("packed with an output layer", {"attention": "fused"}),
        ("plain", {"num_heads": 4}),
        ("positions said only", {"positions": {"base": 10000}}),
        ("positions said only", {"positions": {"base": 1000, "cosine_exponent": "unbracketed"}}),
    ],
)
def test_what_the_weights_do_not_show_does_matter(
    name: str, said: dict[str, Any], tokenizers: tuple[Path, Path], tmp_path: Path
) -> None:
    """The same weights with a different description give other logits, so `test_logits` can fail."""
    notebook = OPTIONS[name]()
    notebook.said.update(said)
    notebook = notebook.write(tmp_path / "saved", tokenizers)
    assert difference(notebook, import_state_dict(notebook.path, notebook.options)) > 1e-2


def test_tied_weights_are_one(tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    notebook = OPTIONS["tied projection"]().write(tmp_path / "saved", tokenizers)
    model = Transformer.of(import_state_dict(notebook.path, notebook.options).model)
    assert model.projection.weight is model.decoder.embedding.tokens.weight


def without_projection(weights: dict[str, Tensor], path: Path) -> None:
    torch.save({name: value for name, value in weights.items() if name != "projection_layer.linear_layer.weight"}, path)


def test_a_tied_projection_may_be_left_out_if_that_is_said(tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    notebook = make(replace(PLAIN, is_tied=True), tie_projection=True).write(
        tmp_path / "saved", tokenizers, without_projection
    )
    assert difference(notebook, import_state_dict(notebook.path, notebook.options)) < 1e-4


def as_safetensors(weights: dict[str, Tensor], path: Path) -> None:
    save_file({name: value.contiguous() for name, value in weights.items()}, path.with_suffix(".safetensors"))


def as_old_format(weights: dict[str, Tensor], path: Path) -> None:
    torch.save(weights, path.with_suffix(".pth"), _use_new_zipfile_serialization=False)


def with_optimizer(weights: dict[str, Tensor], path: Path) -> None:
    torch.save({"epoch": 3, "model_state_dict": weights, "optimizer_state_dict": {"state": {}}}, path)


def as_float64(weights: dict[str, Tensor], path: Path) -> None:
    torch.save({name: value.double() for name, value in weights.items()}, path)


def behind(prefix: str, start: str = "") -> Callable[[dict[str, Tensor], Path], None]:
    """Return a function that saves weights renamed as by a wrapper of the whole model, or of its part `start`."""

    def save(weights: dict[str, Tensor], path: Path) -> None:
        behind = {name: f"{start}{prefix}{name.removeprefix(start)}" for name in weights if name.startswith(start)}
        torch.save({behind.get(name, name): value for name, value in weights.items()}, path)

    return save


@pytest.mark.parametrize(
    "save",
    [
        as_safetensors,
        as_old_format,
        with_optimizer,
        as_float64,
        behind(PARALLEL),
        behind(COMPILED),
        behind(PARALLEL + COMPILED),
        behind(COMPILED + PARALLEL),
        behind(COMPILED, start="encoder."),
        behind(PARALLEL, start="decoder.decoder_list.1."),
    ],
)
def test_kinds_of_files_and_their_folder(
    save: Callable[[dict[str, Tensor], Path], None], tokenizers: tuple[Path, Path], tmp_path: Path
) -> None:
    notebook = make(PLAIN).write(tmp_path / "saved", tokenizers, save)
    imported = import_state_dict(tmp_path / "saved", notebook.options)
    assert difference(notebook, imported) < 1e-4
    assert imported.name == "saved"


def test_what_the_configuration_says_of_the_bundle(tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    said: dict[str, Any] = {
        "name": "first-steps",
        "licence": "CC-BY-4.0",
        "max_source_tokens": 40,
        "max_output_tokens": 30,
        "beam_size": 4,
        "length_penalty": 0.6,
        "suppressed_ids": [],
        "source_prefix_ids": [],
        "source_eos_id": None,
    }
    notebook = make(PLAIN, **said).write(tmp_path / "saved", tokenizers)
    imported = import_state_dict(notebook.path, notebook.options)
    assert (imported.name, imported.licence, imported.family) == ("first-steps", "CC-BY-4.0", "pytorch")
    assert asdict(imported.limits) == {"max_source_tokens": 40, "max_output_tokens": 30}
    assert (imported.generation.beam_size, imported.generation.length_penalty) == (4, 0.6)
    assert imported.suppressed_ids == ()
    assert imported.tokenizer.source_ids([7, 8], imported.languages[0]) == (7, 8)


def test_one_tokenizer_for_both_sides(tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    source, _ = tokenizers
    sizes = replace(SIZES, target_vocabulary_size=SIZES.source_vocabulary_size)
    same = {"pad_id": 0, "unk_id": 1, "decoder_start_id": 2, "eos_id": 3}
    notebook = make(PLAIN, sizes, **same).write(tmp_path / "saved", (source, source))
    imported = import_state_dict(notebook.path, replace(notebook.options, target_tokenizer=None))
    assert imported.tokenizer.files == ("tokenizer.model",)
    assert imported.tokenizer_files == {"tokenizer.model": source}
    assert imported.tokenizer.source_eos_id is None


def test_special_ids_behind_the_tokenizers_own(tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    """As with a padding token added by hand; then one id in both vocabularies fills rows."""
    sizes = replace(SIZES, target_vocabulary_size=SIZES.target_vocabulary_size + 1)
    notebook = make(PLAIN, sizes, decoder_start_id=SIZES.target_vocabulary_size).write(tmp_path / "saved", tokenizers)
    imported = import_state_dict(notebook.path, notebook.options)
    assert imported.tokenizer.decoder_start_id == SIZES.target_vocabulary_size
    assert SIZES.target_vocabulary_size in imported.suppressed_ids
    assert imported.tokenizer.pad_id == imported.model.config.pad_id == 0


def test_json_with_another_unknown_token(json_tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    sizes = replace(SIZES, target_vocabulary_size=SIZES.source_vocabulary_size)
    source, _ = json_tokenizers
    notebook = make(PLAIN, sizes).write(tmp_path / "saved", (source, source))
    with pytest.raises(CheckpointError, match="--target-tokenizer: it has unk_id 1, --config says 0"):
        import_state_dict(notebook.path, notebook.options)


def test_tokenizers_of_two_kinds(
    tokenizers: tuple[Path, Path], json_tokenizers: tuple[Path, Path], tmp_path: Path
) -> None:
    notebook = make(PLAIN).write(tmp_path / "saved", (tokenizers[0], json_tokenizers[1]))
    with pytest.raises(CheckpointError, match="--tokenizer is of kind sentencepiece, --target-tokenizer of kind token"):
        import_state_dict(notebook.path, notebook.options)
