"""Each choice and each layout of names on its own: the logits are those of a model that makes the same choice."""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from export.architecture.transformer import Transformer
from export.importers.imported import ImportedCheckpoint
from export.importers.state_dict.importer import import_in_memory, import_state_dict
from tests.export.importers.module import models
from tests.export.importers.state_dict.checkpoints import (
    SAID_IDS,
    TARGET_SIZE,
    Notebook,
    Save,
    Weights,
    make,
    random_sources,
    renamed,
)
from tests.export.importers.state_dict.readings import (
    SOURCE_SIZE,
    WIDTH,
    Attention,
    Attention003,
    Choices,
    JointAttention,
    ScalarNorm,
)

OF_000, OF_004 = partial(Attention, "W_q W_k W_v W_o"), partial(Attention, "to_queries to_keys to_values unify_heads")
OF_002, VECTOR = partial(Attention, "w_query w_key w_value w_o"), partial(nn.LayerNorm, WIDTH)
FUSED, PACKED = partial(JointAttention, False), partial(JointAttention, True)
PLAIN, FREE = Choices(OF_002), {"positions": {"base": 1000}, "max_source_positions": 64, "max_target_positions": 48}
VARIANTS: dict[str, tuple[Choices, dict[str, Any]]] = {
    "plain": (PLAIN, {}),
    "fused": (Choices(FUSED), {"attention": "fused"}),
    "fused with an output layer": (Choices(partial(FUSED, output=True)), {"attention": "fused"}),
    "packed without biases": (Choices(partial(PACKED, bias=False)), {"attention": "packed"}),
    "packed with an output layer": (Choices(partial(PACKED, output=True)), {"attention": "packed"}),
    "no biases": (Choices(partial(OF_000, bias=False, output_bias=False)), {}),
    "an output without bias": (Choices(partial(OF_000, output_bias=False)), {}),
    "a biased output only": (Choices(partial(OF_000, bias=False)), {}),
    "004's attention": (Choices(partial(OF_004, bias=False, by_width=True)), {"score_scale": "model"}),
    "four heads of their own": (Choices(partial(Attention003, 4)), {"num_heads": ...}),
    "score scale of the model": (Choices(partial(OF_002, by_width=True)), {"score_scale": "model"}),
    "no final norm": (replace(PLAIN, final_norm=False), {}),
    "norm before": (replace(PLAIN, pre_norm=True), {}),
    "norms with a gain per component": (replace(PLAIN, norm=VECTOR), {}),
    "epsilon inside the root": (replace(PLAIN, norm=partial(VECTOR, 0.5)), {"layer_norm_epsilon": 0.5}),
    "epsilon outside the root": (replace(PLAIN, norm=partial(ScalarNorm, 0.5)), {"layer_norm_epsilon": 0.5}),
    "without the ReLU": (replace(PLAIN, activation=lambda x: x), {"activation": "identity"}),
    "another activation": (replace(PLAIN, activation=functional.gelu), {"activation": "gelu"}),
    "base 10000": (replace(PLAIN, base=10000.0), {}),
    "exponents as written": (replace(PLAIN, has_brackets=False), {}),
    "positions said, too": (
        replace(PLAIN, has_brackets=False),
        {"positions": {"base": 1000, "cosine_exponent": "unbracketed"}},
    ),
    "positions said only": (replace(PLAIN, has_tables=False), FREE),
    "positions learned": (replace(PLAIN, base=3.0), {"positions": {"layout": "learned"}}),
    "embeddings as they are": (replace(PLAIN, scale_embeddings=False), {"scale_embeddings": False}),
    "tied projection": (replace(PLAIN, is_tied=True), {}),
    "tied projection without bias": (replace(PLAIN, is_tied=True, projection_bias=False), {}),
    "free projection without bias": (replace(PLAIN, projection_bias=False), {}),
    "feed-forward layers that differ in width": (replace(PLAIN, inner=(21, 38)), {}),
    "layers that differ in number": (replace(PLAIN, num_layers=(3, 1)), {}),
    "one layer of each": (replace(Choices(PACKED), num_layers=(1, 1)), {"attention": "packed"}),
}


def difference(notebook: Notebook, imported: ImportedCheckpoint) -> float:
    """Return the largest difference between the logits."""
    source = torch.tensor(random_sources([9, 9, 9]))
    target = torch.randint(4, TARGET_SIZE, (3, 11), generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        return float((Transformer.of(imported.model)(source, target) - notebook.model(source, target)).abs().max())


@pytest.fixture
def read(tokenizers: tuple[Path, Path], tmp_path: Path) -> Callable[..., ImportedCheckpoint]:
    """Return a function that imports the folder of a notebook's files."""

    def of(notebook: Notebook, save: Save = torch.save) -> ImportedCheckpoint:
        options = notebook.write(tmp_path / "saved", tokenizers, save).options
        return import_state_dict(tmp_path / "saved", options)

    return of


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_of_notebooks(name: str, read: Callable[..., ImportedCheckpoint]) -> None:
    choices, said = VARIANTS[name]
    notebook = make(choices, **said)
    imported = read(notebook)
    assert difference(notebook, imported) < 1e-4
    own = Transformer.of(imported.model)
    assert (own.projection.weight is own.decoder.embedding.tokens.weight) == choices.is_tied
    assert imported.name == "saved"


# What `module/test_reading.py` does not read in modules of other people.
BY_RUNNING = (
    *("plain", "fused", "packed with an output layer", "no biases", "004's attention", "epsilon inside the root"),
    *("without the ReLU", "positions said only"),
)


@pytest.mark.parametrize("name", BY_RUNNING)
def test_variants_are_read_by_running_them(name: str, tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    choices, said = VARIANTS[name]
    if name != "plain":
        choices = replace(choices, num_layers=(1, 1))  # what is read takes long
    notebook = make(choices, **said).write(tmp_path, tokenizers)
    assert difference(notebook, import_in_memory(notebook.model, notebook.options)) < 1e-4


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plain", {"activation": "identity"}),
        ("plain", {"score_scale": "model"}),
        ("plain", {"norm": "pre"}),
        ("plain", {"scale_embeddings": False}),
        ("plain", {"layer_norm_epsilon": 0.5}),
        ("plain", {"num_heads": 4}),
        ("fused", {"attention": "packed"}),
        ("packed with an output layer", {"attention": "fused"}),
        ("positions said only", {"positions": {"base": 10000}}),
        ("positions said only", {"positions": {"base": 1000, "cosine_exponent": "unbracketed"}}),
    ],
)
def test_what_the_weights_do_not_show_does_matter(
    name: str, said: dict[str, Any], read: Callable[..., ImportedCheckpoint]
) -> None:
    """A control: the same weights with a different description give other logits."""
    choices, right = VARIANTS[name]
    notebook = make(choices, **right | said)
    assert difference(notebook, read(notebook)) > 1e-2


PRE = Choices(OF_002, partial(ScalarNorm, 1e-6), pre_norm=True, base=10000.0)
POST = Choices(OF_002, VECTOR, final_norm=False, base=10000.0)
LAYOUTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "hkproj": (PRE, {}),
    "annotated": (replace(PRE, norm=partial(ScalarNorm, 1e-6, WIDTH)), {}),  # a gain and a bias per component
    "trevett": (POST, {}),
    "fairseq": (replace(POST, projection_bias=False), {"norm": "post"}),
    "004": (
        Choices(partial(OF_004, bias=False, by_width=True), VECTOR, base=10000.0),
        {"norm": "post", "activation": "relu", "score_scale": "model"},
    ),
    "pre": (partial(models.Pytorch, True), {"norm": "pre", "activation": "relu"}),
    "post": (partial(models.Pytorch, False), {"norm": "post", "activation": "relu"}),
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:Support for mismatched")
@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str, read: Callable[..., ImportedCheckpoint]) -> None:
    """No size is said. Some have learned positions, in fairseq behind a row for padding, whose id is 0 here."""
    made, said = LAYOUTS[name]
    is_torch = name in ("pre", "post")
    model = models.randomized(made(sizes=(SOURCE_SIZE, TARGET_SIZE))) if is_torch else make(made).model

    def save(weights: Weights, path: Path) -> None:
        weights = renamed(weights, name)
        for ours in [ours for ours in weights if "coder.embed_pos" in ours or "coder.pos_emb" in ours]:
            weights[ours] = functional.pad(weights[ours][0].float(), (0, 0, int(name == "fairseq"), 0), value=9.0)
        torch.save(weights, path)

    notebook = Notebook(model, SAID_IDS | {"num_heads": models.NUM_HEADS if is_torch else 2} | said)
    imported = read(notebook, save)
    assert difference(notebook, imported) < 1e-4
    assert "so is what they don't show: " in imported.notes[0]


def saved_as(change: Callable[[Weights], Any], suffix: str = ".pt", **options: Any) -> Save:
    return lambda weights, path: torch.save(change(weights), path.with_suffix(suffix), **options)


def behind(prefix: str, start: str = "") -> Save:
    """Save the weights named as by a wrapper of the whole model, or of its part `start`."""
    return saved_as(
        lambda weights: {
            f"{start}{prefix}{name.removeprefix(start)}" if name.startswith(start) else name: value
            for name, value in weights.items()
        }
    )


SAVED: dict[str, Save] = {
    "safetensors": lambda weights, path: save_file(weights, path.with_suffix(".safetensors")),
    "old format": saved_as(dict, ".pth", _use_new_zipfile_serialization=False),
    "with an optimizer": saved_as(
        lambda weights: {"epoch": 3, "model_state_dict": weights, "optimizer": {"state": {}}}
    ),
    "float64": saved_as(lambda weights: {name: value.double() for name, value in weights.items()}),
    # What DataParallel and torch.compile put before names.
    "parallel": behind("module."),
    "compiled": behind("_orig_mod."),
    "both": behind("module._orig_mod."),
    "both otherwise": behind("_orig_mod.module."),
    "its encoder compiled": behind("_orig_mod.", start="encoder."),
    "a layer parallel": behind("module.", start="decoder.decoder_list.1."),
}


@pytest.mark.parametrize("name", SAVED)
def test_kinds_of_files(name: str, read: Callable[..., ImportedCheckpoint]) -> None:
    notebook = make(PLAIN)
    assert difference(notebook, read(notebook, SAVED[name])) < 1e-4


def test_a_tied_projection_may_be_missing(read: Callable[..., ImportedCheckpoint]) -> None:
    notebook = make(replace(PLAIN, is_tied=True, projection_bias=False), tie_projection=True)
    kept = saved_as(lambda weights: {name: each for name, each in weights.items() if "projection" not in name})
    assert difference(notebook, read(notebook, kept)) < 1e-4


def test_what_the_configuration_says_of_the_bundle(read: Callable[..., ImportedCheckpoint]) -> None:
    said: dict[str, Any] = {"max_source_tokens": 40, "max_output_tokens": 30, "beam_size": 4, "length_penalty": 0.6}
    said |= {"name": "first-steps", "licence": "CC-BY-4.0"}
    imported = read(make(PLAIN, **said, suppressed_ids=[], source_prefix_ids=[], source_eos_id=None))
    found = asdict(imported.limits) | asdict(imported.generation) | {"name": imported.name, "licence": imported.licence}
    assert said.items() <= found.items()
    assert (imported.family, imported.suppressed_ids) == ("pytorch", ())
    assert imported.tokenizer.source_ids([7, 8], imported.languages[0]) == (7, 8)


def test_one_tokenizer_for_both_sides(tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    said: dict[str, Any] = dict.fromkeys(("pad_id", "unk_id", "eos_id"), ...)  # the tokenizer says them
    notebook = make(replace(PLAIN, target_size=SOURCE_SIZE), **said).write(tmp_path / "saved", tokenizers)
    imported = import_state_dict(notebook.path, replace(notebook.options, target_tokenizer=None))
    assert imported.tokenizer.files == ("tokenizer.model",)
    assert imported.tokenizer_files == {"tokenizer.model": tokenizers[0]}
    assert imported.tokenizer.source_eos_id is None
    assert [getattr(imported.model.config, name) for name in said] == [0, 1, 3]


def test_special_ids_behind_the_tokenizers_own(read: Callable[..., ImportedCheckpoint]) -> None:
    """As with a padding token added by hand; then one id in both vocabularies fills rows."""
    imported = read(make(replace(PLAIN, target_size=TARGET_SIZE + 1), decoder_start_id=TARGET_SIZE))
    assert imported.tokenizer.decoder_start_id == TARGET_SIZE
    assert TARGET_SIZE in imported.suppressed_ids
    assert imported.tokenizer.pad_id == imported.model.config.pad_id == 0
