"""State dicts by the names of tutorials: no size is said, and the logits are those of a model that is not ours."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from export.importers.imported import CheckpointError
from export.importers.state_dict.importer import import_state_dict
from tests.export.importers.state_dict.checkpoints import SIZES, Notebook, make
from tests.export.importers.state_dict.readings import Attention002, Choices, ScalarNorm
from tests.export.importers.state_dict.test_options import difference

WIDTH, NUM_HEADS = SIZES.d_model, SIZES.num_heads
Renames = tuple[tuple[str, str], ...]
Change = Callable[[dict[str, Tensor]], dict[str, Tensor]]
SAID_IDS = ("pad_id", "eos_id", "unk_id", "decoder_start_id", "source_pad_id", "source_prefix_ids", "source_eos_id")


class DeviationNorm(ScalarNorm):
    """The Annotated Transformer's: a gain and a bias per component, epsilon added to the unbiased deviation."""

    def __init__(self) -> None:
        super().__init__(1e-6)
        self.aplha, self.beta = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))


def attention() -> nn.Module:
    return Attention002(WIDTH, NUM_HEADS)


PRE = Choices(attention, lambda: ScalarNorm(1e-6), pre_norm=True, base=10000.0)
POST = Choices(attention, lambda: nn.LayerNorm(WIDTH), final_norm=False, base=10000.0)
HKPROJ: Renames = (
    (r"(source|target)_embedding.embeddings", r"<\1>_embed.embedding"),
    (r"(source|target)_positional_encoding.positional_embeddings", r"<\1>_pos.pe"),
    (r"projection_layer.linear_layer", "projection_layer.proj"),
    (r"\.(en|de)coder_list", ".layers"),
    (r"self_attention", "self_attention_block"),
    (r"cross_attention", "source_attention_block"),
    (r"w_([qkv])[a-z]+", r"w_\1"),
    (r"(skip_connections|residual_connection)\.", "residual_connections."),
    (r"feed_forward_layers", "feed_forward_block"),
    (r"linear_layer", "linear_"),
    (r"normalize", "norm"),
    (r"aplha", "alpha"),
    (r"beta", "bias"),
    (r"<source>", "src"),
    (r"<target>", "tgt"),
)
ANNOTATED: Renames = (
    *HKPROJ,
    (r"_embed.embedding", "_embed.0.lut"),
    (r"_pos.pe", "_embed.1.pe"),
    (r"projection_layer", "generator"),
    (r"self_attention_block", "self_attn"),
    (r"source_attention_block", "src_attn"),
    *((rf"w_{word}\.", f"linears.{number}.") for number, word in enumerate("qkvo")),
    (r"residual_connections", "sublayer"),
    (r"feed_forward_block.linear_", "feed_forward.w_"),
    (r"norm.alpha", "norm.a_2"),
    (r"norm.bias", "norm.b_2"),
)
TREVETT: Renames = (
    *HKPROJ,
    (r"src_embed.embedding", "encoder.tok_embedding"),
    (r"tgt_embed.embedding", "decoder.tok_embedding"),
    (r"src_pos.pe", "encoder.pos_embedding.weight"),
    (r"tgt_pos.pe", "decoder.pos_embedding.weight"),
    (r"projection_layer.proj", "decoder.fc_out"),
    (r"_attention_block.w_", "_attention.fc_"),
    (r"source_attention", "encoder_attention"),
    (r"feed_forward_block.linear_", "positionwise_feedforward.fc_"),
    (r"residual_connections.0.norm", "self_attn_layer_norm"),
    (r"(encoder.*)residual_connections.1.norm|residual_connections.2.norm", r"\1ff_layer_norm"),
    (r"residual_connections.1.norm", "enc_attn_layer_norm"),
)
FAIRSEQ: Renames = (
    *TREVETT,
    (r"(tok|pos)_embedding", r"embed_\1ens"),
    (r"embed_posens", "embed_positions"),
    (r"fc_out", "output_projection"),
    (r"self_attention.fc_o", "self_attn.out_proj"),
    (r"encoder_attention.fc_o", "encoder_attn.out_proj"),
    (r"self_attention.fc_([qkv])", r"self_attn.\1_proj"),
    (r"encoder_attention.fc_([qkv])", r"encoder_attn.\1_proj"),
    (r"positionwise_feedforward.fc_", "fc"),
    (r"enc_attn_layer_norm", "encoder_attn_layer_norm"),
    (r"ff_layer_norm", "final_layer_norm"),
)


def learned(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value[0].float() if "pos_embedding" in name else value for name, value in weights.items()}


def after_padding(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Put a row before the positions, as padding has id 0 on one side here."""
    return {
        name: torch.cat([torch.full((1, WIDTH), 9.0), value[0].float()]) if "embed_positions" in name else value
        for name, value in weights.items()
    }


@pytest.mark.parametrize(
    ("choices", "renames", "change", "said"),
    [
        pytest.param(PRE, HKPROJ, dict, {}, id="hkproj"),
        pytest.param(replace(PRE, norm=DeviationNorm), ANNOTATED, dict, {}, id="annotated"),
        pytest.param(POST, TREVETT, learned, {}, id="trevett"),
        pytest.param(replace(POST, projection_bias=False), FAIRSEQ, after_padding, {"norm": "post"}, id="fairseq"),
    ],
)
def test_logits(
    choices: Choices,
    renames: Renames,
    change: Change,
    said: dict[str, Any],
    tokenizers: tuple[Path, Path],
    tmp_path: Path,
) -> None:
    notebook = make(choices)
    notebook.said = {name: notebook.said[name] for name in SAID_IDS} | {"num_heads": NUM_HEADS} | said
    notebook = notebook.write(
        tmp_path / "saved", tokenizers, lambda weights, path: torch.save(change(renamed(weights, renames)), path)
    )
    imported = import_state_dict(notebook.path, notebook.options)
    assert difference(notebook, imported) < 1e-4
    assert "so is what they don't show: " in imported.notes[0]


def renamed(weights: dict[str, Tensor], renames: Renames) -> dict[str, Tensor]:
    names = dict.fromkeys(weights, "")
    for name in names:
        new = name
        for pattern, replacement in renames:
            new = re.sub(pattern, replacement, new)
        names[name] = new
    return {names[name]: value for name, value in weights.items()}


class Tutorial(nn.Module):
    """torch.nn.Transformer with the embeddings and the generator of PyTorch's tutorial."""

    def __init__(self, *, norm_first: bool) -> None:
        super().__init__()
        self.transformer = nn.Transformer(WIDTH, 2, 2, 2, 24, 0.0, batch_first=True, norm_first=norm_first)
        self.generator = nn.Linear(WIDTH, SIZES.target_vocabulary_size)
        self.src_tok_emb, self.tgt_tok_emb = nn.Module(), nn.Module()
        self.src_tok_emb.embedding = nn.Embedding(SIZES.source_vocabulary_size, WIDTH)
        self.tgt_tok_emb.embedding = nn.Embedding(SIZES.target_vocabulary_size, WIDTH)
        angles = torch.arange(50.0)[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * -math.log(10000.0) / WIDTH)
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        self.positional_encoding = nn.Module()
        self.positional_encoding.register_buffer("pos_embedding", table[:, None])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        table = self.positional_encoding.get_buffer("pos_embedding")[:, 0]
        embedded = [
            part.get_submodule("embedding")(ids) * math.sqrt(WIDTH) + table[: ids.shape[1]]
            for part, ids in ((self.src_tok_emb, source), (self.tgt_tok_emb, target))
        ]
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        logits: Tensor = self.generator(self.transformer(*embedded, tgt_mask=mask))
        return logits


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_tutorial_of_torch(norm: str, tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    torch.manual_seed(0)
    notebook = make(POST)
    notebook.said = {name: notebook.said[name] for name in SAID_IDS} | {"num_heads": 2, "activation": "relu"}
    other: Any = Notebook(Tutorial(norm_first=norm == "pre").eval(), notebook.said | {"norm": norm})  # type: ignore[arg-type]
    written = other.write(tmp_path / "saved", tokenizers)
    assert difference(written, import_state_dict(written.path, written.options)) < 1e-4
    other.said.pop("activation")
    written = other.write(tmp_path / "saved", tokenizers)
    with pytest.raises(CheckpointError, match="--config: activation is missing, which the weights do not show"):
        import_state_dict(written.path, written.options)
