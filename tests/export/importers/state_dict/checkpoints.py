"""Small models of the documents with random weights, in the files that a user would have."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor, nn

from export.importers.options import ImportOptions
from export.verification_texts import GOLDEN_TEXTS
from tests.export.importers.state_dict.readings import SOURCE_SIZE, Choices, Transformer002
from tests.tokenizer_folders import train_sentencepiece

TARGET_SIZE = 100
SOURCE_IDS = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
TARGET_IDS = {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": 3}
NEVER = [0, 1, 3]  # of the target: unknown, start and padding
SAID_IDS = {
    **{name: TARGET_IDS[name] for name in ("pad_id", "eos_id", "unk_id")},
    "decoder_start_id": TARGET_IDS["bos_id"],
    "source_pad_id": SOURCE_IDS["pad_id"],
    "source_prefix_ids": [SOURCE_IDS["bos_id"]],
    "source_eos_id": SOURCE_IDS["eos_id"],
}
HINDI = (
    "रेलवे स्टेशन कहाँ है?",
    "मुझे एक कप कॉफ़ी चाहिए।",
    "मेरा भाई समुद्र के पास एक छोटे घर में रहता है।",
    "खिड़की बंद करने से पहले फ़ाइल सहेजें।",
    "कल से बारिश हो रही है।",
    "क्या आप मेरी चाबियाँ खोजने में मदद कर सकते हैं?",
)
Weights = dict[str, Tensor]
Save = Callable[[Weights, Path], Any]


@dataclass
class Notebook:
    """A model, its owner's description for `--config`, and its files once they are written."""

    model: Any
    said: dict[str, Any]
    options: ImportOptions = field(default_factory=ImportOptions)
    path: Path = Path()

    def write(self, directory: Path, tokenizers: tuple[Path, Path], save: Save = torch.save) -> "Notebook":
        """Save the state dict and the configuration, from which `...` leaves a key out."""
        directory.mkdir(exist_ok=True)
        path, config = directory / "model.pt", directory / "config.json"
        save(self.model.state_dict(), path)
        said = {name: value for name, value in self.said.items() if value is not ...}
        config.write_text(json.dumps(said), encoding="utf-8")
        return replace(self, path=path, options=ImportOptions("en", "hi", config, *tokenizers))


def make(choices: Choices, seed: int = 0, **said: Any) -> Notebook:
    """Make a model of these choices; `said` is added to the required keys of its configuration."""
    model = randomized(Transformer002(choices), seed)
    required = {"num_heads": 2, "norm": "pre" if choices.pre_norm else "post", "activation": "relu"}
    return Notebook(model, {**required, "score_scale": "head", **SAID_IDS, **said})


@torch.no_grad()
def randomized(model: nn.Module, seed: int = 0) -> nn.Module:
    """Set weights so that the next token depends on the source and all tokens before, and sentences do end."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 1 and name.endswith(("weight", "aplha")):
            parameter.copy_(1.0 + 0.1 * noise)  # gains
        elif parameter.dim() == 1 or parameter.shape[-1] == 1:
            parameter.copy_(0.1 * noise)  # biases
        elif "embeddings" in name or "projection" in name:
            parameter.copy_(noise)
        else:
            parameter.copy_((1.0 if "attention" in name else 0.5) * noise * parameter.shape[-1] ** -0.5)
    model.get_parameter("projection_layer.linear_layer.weight")[TARGET_IDS["eos_id"]] *= 2.5
    return model


# What 002 calls its parts, and what others do.
LAYOUTS, *RENAMES = (
    line.split()
    for line in """\
002 hkproj annotated trevett fairseq 004
source_embedding.embeddings src_embed.embedding src_embed.0.lut encoder.tok_embedding encoder.embed_tokens =
target_embedding.embeddings tgt_embed.embedding tgt_embed.0.lut decoder.tok_embedding decoder.embed_tokens =
source_pos.+ings src_pos.pe src_embed.1.pe encoder.pos_embedding.weight encoder.embed_positions.weight =
target_pos.+ings tgt_pos.pe tgt_embed.1.pe decoder.pos_embedding.weight decoder.embed_positions.weight =
projection_layer.linear_layer projection_layer.proj generator.proj decoder.fc_out decoder.output_projection =
(en|de)coder_list layers layers layers layers =
self_attention self_attention_block self_attn self_attention self_attn attention
cross_attention source_attention_block src_attn encoder_attention encoder_attn =
w_query w_q linears.0 fc_q q_proj =
w_key w_k linears.1 fc_k k_proj =
w_value w_v linears.2 fc_v v_proj =
w_o w_o linears.3 fc_o out_proj =
feed_forward_[bl].+layer1 feed_forward_block.linear_1 feed_forward.w_1 positionwise_feedforward.fc_1 fc1 ff.0
feed_forward_[bl].+layer2 feed_forward_block.linear_2 feed_forward.w_2 positionwise_feedforward.fc_2 fc2 ff.2
skip_co.+0.normalize residual_connections.0.norm sublayer.0.norm self_attn_layer_norm self_attn_layer_norm norm_1
skip_co.+1.normalize residual_connections.1.norm sublayer.1.norm ff_layer_norm final_layer_norm norm_2
residual_co.+0.normalize residual_connections.0.norm sublayer.0.norm self_attn_layer_norm self_attn_layer_norm norm_1
residual_co.+1.normalize residual_connections.1.norm sublayer.1.norm enc_attn_layer_norm encoder_attn_layer_norm norm_2
residual_co.+2.normalize residual_connections.2.norm sublayer.2.norm ff_layer_norm final_layer_norm norm_3
normalize norm norm norm norm =
aplha alpha a_2 = = =
beta bias b_2 = = =
""".splitlines()
)


def renamed(weights: Weights, layout: str) -> Weights:
    """Return 002's weights by the names of a layout."""
    for theirs, *others in RENAMES:
        replacement = dict(zip(LAYOUTS, ["=", *others], strict=True)).get(layout, "=")
        weights = {name if replacement == "=" else re.sub(theirs, replacement, name): weights[name] for name in weights}
    return weights


def train_tokenizers(directory: Path) -> tuple[Path, Path]:
    """Write SentencePiece models of source and target, of different sizes and with different special ids."""
    source, target = directory / "english.model", directory / "hindi.model"
    source.write_bytes(train_sentencepiece(GOLDEN_TEXTS, "bpe", SOURCE_SIZE, **SOURCE_IDS))
    target.write_bytes(train_sentencepiece(HINDI, "bpe", TARGET_SIZE, **TARGET_IDS))
    return source, target


def train_json_tokenizers(directory: Path) -> tuple[Path, Path]:
    """Write tokenizers with the same sizes and special ids as JSON of the tokenizers library."""
    source = train_json_tokenizer(GOLDEN_TEXTS, directory / "tokenizer_en.json", SOURCE_SIZE, SOURCE_IDS)
    return source, train_json_tokenizer(HINDI, directory / "tokenizer_hi.json", TARGET_SIZE, TARGET_IDS)


def train_json_tokenizer(texts: Iterable[str], path: Path, size: int, ids: dict[str, int]) -> Path:
    """Write a tokenizer as tutorials do: words, an unknown token, and special tokens first."""
    tokenizer = Tokenizer(models.BPE(unk_token="[unk_id]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = [f"[{name}]" for name in sorted(ids, key=lambda name: ids[name])]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(path))
    return path


def random_sources(lengths: list[int], seed: int = 1) -> list[list[int]]:
    """Return sources of ordinary tokens between the start and the end token."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randint(4, SOURCE_SIZE, (length,), generator=generator).tolist() for length in lengths]
    return [[SOURCE_IDS["bos_id"], *ids, SOURCE_IDS["eos_id"]] for ids in drawn]
