"""Any module is read by running it: what our architecture computes with its weights is what the module computes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from export.architecture.stored import StoredModel
from export.architecture.transformer import Transformer
from export.importers.module.author import Author
from export.importers.module.importer import read_module
from export.importers.options import ImportOptions
from export.importers.state_dict.finish import Companions
from export.importers.state_dict.settings import Settings
from export.importers.vocabulary import Vocabulary
from tests.export.importers.module.models import LONGEST, MODELS, PAD, SOURCE_SIZE, TARGET_SIZE, randomized

pytestmark = pytest.mark.filterwarnings(
    "ignore:enable_nested_tensor", "ignore:Support for mismatched", "ignore:The PyTorch API"
)

SAID = {"pad_id": PAD, "unk_id": 1, "decoder_start_id": 2, "eos_id": 3, "source_prefix_ids": [], "source_eos_id": 3}
PLAIN = {"layer_norm": "vector", "gated": False, "tie_projection": False, "final_norm": True, "embedding_norm": False}
PLAIN |= {"activation": "relu", "num_heads": 4, "d_ff": 24, "num_encoder_layers": 2, "num_decoder_layers": 2}
PAPER, LEARNED = {"positions.layout": "interleaved", "scale_embeddings": True}, {"positions.layout": "learned"}
CHOICES: dict[str, dict[str, Any]] = {
    "torch post": PAPER | {"norm": "post"},
    "torch pre": PAPER | {"norm": "pre", "activation": "gelu", "projection_bias": True},
    "torch batch first": PAPER | {"norm": "post"},
    "a Linear per head": LEARNED | {"norm": "post", "final_norm": False, "attention_bias": True},
    "packed": LEARNED | {"norm": "pre", "activation": "silu", "gated": True, "tie_projection": True},
    "grouped": LEARNED | {"norm": "pre", "layer_norm": "rms", "activation": "silu", "attention_bias": False},
    "rotary": {
        "norm": "pre",
        "positions.layout": "rotary",
        "positions.rotary_pairs": "halves",
        "attention_bias": False,
    },
    "half rotary": {"norm": "pre", "positions.rotary_size": 4, "positions.base": 1e4, "d_head": 8},
    "alpha": LEARNED | {"norm": "post", "final_norm": False},
    "scalar norms": LEARNED | {"norm": "pre", "layer_norm": "scalar", "activation": "gelu"},
}


def read(module: nn.Module) -> StoredModel:
    ids = {name: SAID[name] for name in ("pad_id", "unk_id", "decoder_start_id", "eos_id")}
    ids |= {"max_source_positions": LONGEST, "max_target_positions": LONGEST}
    source, target = (Vocabulary("tokenizers", ".json", size, {}, Path()) for size in (SOURCE_SIZE, TARGET_SIZE))
    companions = Companions(ImportOptions(), Settings(ids, source_eos_id=3), source, target)
    return read_module(Author(module, lambda model, *rows: model(*rows)), companions)


@torch.no_grad()
def difference(module: nn.Module, own: Transformer) -> float:
    """Return the largest difference of log-probabilities, as a part of their range, for rows of several lengths."""
    random = torch.Generator().manual_seed(1)
    found: list[Tensor] = []
    for lengths in ((2, 3), (9, 4), (1, 40), (LONGEST, 19)):
        rows = [
            torch.randint(4, size, (3, length), generator=random)
            for size, length in zip((SOURCE_SIZE, TARGET_SIZE), lengths, strict=True)
        ]
        expected = module(*rows).log_softmax(-1)
        found.append((expected - own(*rows).log_softmax(-1)).abs().max() / (expected.max() - expected.min()))
    return float(max(found))


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_choices(name: str) -> None:
    module = randomized(MODELS[name]())
    stored = read(module)
    own, config = Transformer.of(stored), stored.config
    assert difference(module, own) < 1e-5
    document = config.to_document()
    said = {f"positions.{key}": value for key, value in document["positions"].items()} | document
    assert {key: said[key] for key in PLAIN | CHOICES[name]} == PLAIN | CHOICES[name]
    with torch.no_grad():
        next(each for each in module.parameters() if each.dim() > 1).mul_(1.01)
    assert difference(module, own) > 1e-4, "a control: a changed weight is seen"


def test_two_norms_in_a_row_that_nothing_has_trained() -> None:
    """The layer's and the stack's: without gains, both together are nearly one norm."""
    module = randomized(MODELS["torch post"]())
    for each in module.modules():
        if isinstance(each, nn.LayerNorm):
            each.reset_parameters()
    stored = read(module)
    assert (stored.config.final_norm, stored.config.layer_norm_epsilon) == (True, 1e-5)
    assert difference(module, Transformer.of(stored)) < 1e-5
