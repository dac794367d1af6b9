"""Checkpoint folders as transformers writes them, all small.

They use its own classes with random weights, real tokenizers, and the settings of published configurations.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    BartForConditionalGeneration,
    GenerationConfig,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    PLBartConfig,
    PLBartForConditionalGeneration,
)

from export.architecture.transformer import Transformer
from export.importers.imported import ImportedCheckpoint
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.selection import import_checkpoint
from tests.export.importers.t5 import checkpoints as t5_checkpoints
from tests.tokenizer_folders import (
    pieces_of,
    write_bart,
    write_bpe,
    write_fairseq_sentencepiece,
    write_m2m100,
    write_marian,
)

SIZES: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 128,
}
ODD_SIZES: dict[str, Any] = {
    "d_model": 36,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 50,
    "decoder_ffn_dim": 70,
    "max_position_embeddings": 101,
}
MAX_LENGTH = 24


def marian(directory: Path, languages: tuple[str, ...] = (), is_separate: bool = False, **changes: Any) -> Path:
    """Write one like opus-mt-en-de: swish, post-norm, starts with padding, `final_logits_bias`, padding forbidden."""
    write_marian(directory, languages, is_separate)
    vocabulary = json.loads((directory / "vocab.json").read_text(encoding="utf-8"))
    pad_id = vocabulary["<pad>"]
    config = MarianConfig(
        **{
            **SIZES,
            "vocab_size": len(vocabulary),
            "decoder_vocab_size": len(vocabulary),
            "activation_function": "swish",
            "scale_embedding": True,
            "share_encoder_decoder_embeddings": not is_separate,
            "pad_token_id": pad_id,
            "decoder_start_token_id": pad_id,
            "eos_token_id": 0,
            "forced_eos_token_id": 0,
            **changes,
        }
    )
    torch.manual_seed(1)
    model = MarianMTModel(config)
    _enliven(model, gain=2.0, attention_gain=4.0)
    with torch.no_grad():
        model.final_logits_bias.copy_(0.1 * torch.randn_like(model.final_logits_bias))
        model.final_logits_bias[0, 0] = 2.2
    model.generation_config = GenerationConfig(
        num_beams=4,
        max_length=MAX_LENGTH,
        bad_words_ids=[[pad_id]],
        forced_eos_token_id=0,
        pad_token_id=pad_id,
        decoder_start_token_id=pad_id,
        eos_token_id=0,
        renormalize_logits=True,
    )
    model.save_pretrained(directory)
    return directory


def m2m100(directory: Path, **changes: Any) -> Path:
    """Write one like m2m100_418M: ReLU, pre-norm, 100 languages, five beams with early stopping."""
    write_m2m100(directory)
    vocabulary = json.loads((directory / "vocab.json").read_text(encoding="utf-8"))
    _write_m2m100_model(directory, len(vocabulary) + 100 + 8, {"num_beams": 5, "early_stopping": True}, changes)
    return directory


def small100(directory: Path, **changes: Any) -> Path:
    """Write one like small100: M2M100 with other numbers of layers, and a class of tokenizers of its own."""
    m2m100(directory, **{"encoder_layers": 3, "decoder_layers": 1, **changes})
    (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "SMALL100Tokenizer"}', encoding="utf-8")
    return directory


def mbart_50(directory: Path, **changes: Any) -> Path:
    """Write one like mbart-large-50-many-to-many-mmt: ReLU, pre-norm, 52 languages, starts from the end token."""
    write_fairseq_sentencepiece(directory)
    size = _num_pieces(directory) + 1 + 52 + 1
    generation = {"num_beams": 5, "early_stopping": True, "decoder_start_token_id": 2, "forced_eos_token_id": 2}
    changes = {"activation_function": "relu", "scale_embedding": True, "tokenizer_class": "MBart50Tokenizer"} | changes
    _write_bart_model(directory, MBartConfig, MBartForConditionalGeneration, size, generation, changes)
    return directory


def mbart(directory: Path, **changes: Any) -> Path:
    """Write one like mbart-large-en-ro: GELU, pre-norm, starts from the language's token, Romanian."""
    write_fairseq_sentencepiece(directory)
    first = _num_pieces(directory) + 1
    generation = {"num_beams": 5, "decoder_start_token_id": first + 19, "forced_eos_token_id": 2}
    _write_bart_model(directory, MBartConfig, MBartForConditionalGeneration, first + 25 + 1, generation, changes, 1.8)
    return directory


def plbart(directory: Path, **changes: Any) -> Path:
    """Write one like plbart-python-en_XX: GELU, post-norm, scaled embeddings, starts from the language's token."""
    write_fairseq_sentencepiece(directory)
    first = _num_pieces(directory) + 1
    generation = {"num_beams": 3, "decoder_start_token_id": first + 2, "forced_eos_token_id": 2}
    _write_bart_model(directory, PLBartConfig, PLBartForConditionalGeneration, first + 3 + 1, generation, changes, 1.8)
    return directory


def bart(directory: Path, **changes: Any) -> Path:
    """Write one like bart-large-cnn: GELU, post-norm, "<s>" is forced first, a summariser's settings."""
    write_bart(directory)
    size = len(json.loads((directory / "vocab.json").read_text(encoding="utf-8")))
    generation = {
        "num_beams": 4,
        "early_stopping": True,
        "length_penalty": 2.0,
        "min_length": 6,
        "no_repeat_ngram_size": 3,
        "decoder_start_token_id": 2,
        "forced_bos_token_id": 0,
        "forced_eos_token_id": 2,
    }
    _write_bart_model(directory, BartConfig, BartForConditionalGeneration, size, generation, changes)
    return directory


def nllb(directory: Path, **changes: Any) -> Path:
    """Write one like nllb-200-distilled-600M: the same model, a `tokenizer.json`, a length limit and nothing else."""
    directory.mkdir(parents=True)
    write_bpe(directory / "tokenizer.json")
    vocabulary = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    size = 1 + max(*vocabulary["model"]["vocab"].values(), *(token["id"] for token in vocabulary["added_tokens"]))
    _write_m2m100_model(directory, size + 2, {}, changes)
    return directory


def with_tables(folder: Path, names: dict[str, str]) -> Path:
    """Write the same folder with its tables under other names."""
    path = folder / "model.safetensors"
    save_file({names.get(name, name): value.clone() for name, value in load_file(path).items()}, path)
    return folder


FEW_LAYERS: dict[str, Any] = {"encoder_layers": 1, "decoder_layers": 1}  # tracing takes most of a conversion's time
FAMILIES: dict[str, Callable[[Path], Path]] = {
    "marian": lambda folder: marian(folder, **FEW_LAYERS),
    "marian-separate": lambda folder: with_tables(
        marian(folder, is_separate=True, encoder_ffn_dim=50, decoder_ffn_dim=70, **FEW_LAYERS),
        {"model.decoder.embed_tokens.weight": "lm_head.weight"},
    ),
    "m2m100": lambda folder: m2m100(folder, **FEW_LAYERS),
    "nllb": lambda folder: with_tables(
        nllb(folder, encoder_layers=1), {"model.shared.weight": "model.decoder.embed_tokens.weight"}
    ),
    "small100": lambda folder: small100(folder, encoder_layers=1),
    "mbart_50": lambda folder: mbart_50(folder, encoder_layers=1),
    "mbart": lambda folder: mbart(folder, encoder_layers=1),
    "plbart": lambda folder: plbart(folder, encoder_layers=1),
    "bart": lambda folder: bart(folder, encoder_layers=1),
    **t5_checkpoints.FAMILIES,
    "t5": lambda folder: t5_checkpoints.t5(folder, num_layers=1),
}
FURTHER = t5_checkpoints.FURTHER  # of which the normal run converts none
OPTIONS = {"bart": ImportOptions(source_language="en", target_language="de")}


def read(folder: Path) -> ImportedCheckpoint:
    """Import the checkpoint in a folder below that of its family, with the options that it needs."""
    return import_checkpoint(folder, options=OPTIONS.get(folder.parent.name, NOTHING_SAID))


def largest_difference(folder: Path, lengths: Sequence[int]) -> float:
    """Return how far our logits are from transformers', as a share of their range."""
    ours = Transformer.of(read(folder).model)
    theirs = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32)
    differences = []
    generator = torch.Generator().manual_seed(6)
    most = min(190, ours.config.target_vocabulary_size)
    for shape in zip(lengths, reversed(lengths), strict=True):
        source_ids, target_ids = (torch.randint(3, most, (2, length), generator=generator) for length in shape)
        with torch.no_grad():
            expected = theirs(input_ids=source_ids, decoder_input_ids=target_ids).logits
            given = ours(source_ids, target_ids)
        differences.append(float((given - expected).abs().max() / (expected.max() - expected.min())))
    return max(differences)


def _num_pieces(directory: Path) -> int:
    model = (directory / "sentencepiece.bpe.model").read_bytes()
    return len(pieces_of(model)) + 3


def _write_bart_model(
    directory: Path,
    config_class: Any,
    model_class: Any,
    vocabulary_size: int,
    generation: dict[str, Any],
    changes: dict[str, Any],
    end_bias: float = 1.2,
) -> None:
    config = config_class(**{**SIZES, **ODD_SIZES, "vocab_size": vocabulary_size, **changes})
    torch.manual_seed(4)
    model = model_class(config)
    _enliven(model, gain=2.0, attention_gain=4.0)
    with torch.no_grad():
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight.normal_(std=side.embed_tokens.embed_scale * config.d_model**-0.5)
        model.final_logits_bias.copy_(0.1 * torch.randn_like(model.final_logits_bias))
        model.final_logits_bias[0, 2] = end_bias  # some end by themselves, most not at once
    model.generation_config = GenerationConfig(
        max_length=MAX_LENGTH, pad_token_id=1, bos_token_id=0, eos_token_id=2, **generation
    )
    model.save_pretrained(directory)


def _write_m2m100_model(
    directory: Path, vocabulary_size: int, generation: dict[str, Any], changes: dict[str, Any]
) -> None:
    config = M2M100Config(
        **{
            **SIZES,
            "vocab_size": vocabulary_size,
            "pad_token_id": 1,
            "bos_token_id": 0,
            "eos_token_id": 2,
            "decoder_start_token_id": 2,
            "scale_embedding": True,
            **changes,
        }
    )
    torch.manual_seed(2)
    model = M2M100ForConditionalGeneration(config)
    _enliven(model, gain=4.0, attention_gain=4.0)
    with torch.no_grad():  # every hidden state gets a component along the end token's row, so outputs end
        end = model.model.shared.weight[2]
        model.model.decoder.layer_norm.bias.add_(2.5 * end / end.square().sum())
    model.generation_config = GenerationConfig(
        max_length=MAX_LENGTH, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, **generation
    )
    model.save_pretrained(directory)


@torch.no_grad()
def _enliven(model: Any, gain: float, attention_gain: float = 1.0) -> None:
    """Scale up matrices so that tokens depend on all before them, with sharp attention; one-row weights get noise."""
    torch.manual_seed(3)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter) * 0.05)
        elif "shared" in name or "embed_tokens" in name:
            parameter.normal_(std=model.config.d_model**-0.5)
        elif "embed_positions" not in name:
            torch.nn.init.xavier_uniform_(parameter)
            parameter.mul_(attention_gain if "q_proj" in name or "k_proj" in name else gain)
