"""Folders as CTranslate2's own converters write them of tiny models with random weights."""

import json
import shutil
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from ctranslate2.converters.transformers import M2M100Loader, MBartLoader, T5Loader, TransformersConverter, UMT5Loader
from transformers import (
    M2M100ForConditionalGeneration,
    MarianTokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    NllbTokenizer,
    T5Config,
    T5ForConditionalGeneration,
    UMT5Config,
    UMT5ForConditionalGeneration,
)

from export.importers.huggingface.m2m100 import read_m2m100
from tests.export.huggingface import checkpoints
from tests.export.importers.ctranslate2.variants import sentencepiece, tokens

_MBART_LANGUAGES = ("de_DE", "en_XX", "fr_XX")


class _Converter(TransformersConverter):  # type: ignore[misc]  # it has no types
    """Its `AutoTokenizer` needs a setting that says the class."""

    def __init__(self, folder: Path, tokenizer: Any, copied: tuple[str, ...]) -> None:
        super().__init__(str(folder), copy_files=list(copied))
        self._tokenizer = tokenizer

    def load_tokenizer(self, _tokenizer_class: Any, model_name_or_path: str, **_settings: Any) -> Any:
        return self._tokenizer.from_pretrained(model_name_or_path)


def _of_transformers(write: Callable[..., Path], tokenizer: Any, *copied: str) -> Callable[[Path, str | None], Path]:
    """Return a function that writes a folder with these files of the tokenizer."""

    def convert(directory: Path, quantization: str | None) -> Path:
        folder = write(directory.parent / f"{directory.name}-transformers")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converter = _Converter(folder, tokenizer, copied)
            converter.convert(str(directory), quantization=quantization)
        return directory

    return convert


def _write(directory: Path, spec: Any, names: list[str], quantization: str | None, **config: Any) -> Path:
    """Write a specification with this vocabulary on both sides."""
    for side in (spec.register_source_vocabulary, spec.register_target_vocabulary):
        side(names)
    for name, value in config.items():
        setattr(spec.config, name, value)
    spec.validate()
    spec.optimize(quantization=quantization)
    directory.mkdir(parents=True)
    spec.save(str(directory))
    (directory / "sentencepiece.model").write_bytes(sentencepiece())
    return directory


def _enliven(model: Any, gain: float = 2.0) -> Any:
    torch.manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.05)
            elif any(each in name for each in ("shared", "embed_tokens", "embed_positions")):
                parameter.normal_(std=parameter.shape[1] ** -0.5)
            elif "relative_attention_bias" in name:
                parameter.normal_(std=1.0)
            else:
                torch.nn.init.xavier_uniform_(parameter)
                # T5 does not divide scores: its weights are smaller.
                parameter.mul_(gain * model.config.d_kv**-0.5 if name.endswith(".q.weight") else gain)
    return model.eval()


def _mbart(directory: Path, quantization: str | None) -> Path:
    """Write a model like mBART-50: learned positions, a norm of embeddings, language tokens before both sides."""
    names = [*tokens(), *_MBART_LANGUAGES]
    config = MBartConfig(
        vocab_size=len(names),
        d_model=36,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=51,
        decoder_ffn_dim=67,
        max_position_embeddings=90,
        scale_embedding=True,
        pad_token_id=0,
        bos_token_id=3,
        eos_token_id=2,
        decoder_start_token_id=2,
    )
    config.normalize_before, config.normalize_embedding = True, True
    spec = MBartLoader().get_model_spec(_enliven(MBartForConditionalGeneration(config)))
    return _write(directory, spec, names, quantization, decoder_start_token="</s>")


def _m2m100(directory: Path, quantization: str | None) -> Path:
    """Write a model like M2M100; the converter does not find the languages of transformers 5's tokenizer."""
    # Few positions: along outputs of a hundred random tokens, rounding decides which beams survive.
    folder = checkpoints.m2m100(directory.parent / f"{directory.name}-transformers", max_position_embeddings=48)
    model = M2M100ForConditionalGeneration.from_pretrained(folder)
    files = read_m2m100(folder)
    vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
    names = sorted(vocabulary, key=vocabulary.__getitem__) + [f"__{code}__" for code in files.languages]
    names += [f"madeupword{index}" for index in range(model.config.vocab_size - len(names))]
    spec = M2M100Loader().get_model_spec(model)
    _write(directory, spec, names, quantization, decoder_start_token="</s>")
    shutil.copyfile(folder / "sentencepiece.bpe.model", directory / "sentencepiece.model")
    return directory


def _t5(directory: Path, quantization: str | None, *, per_layer: bool, **changes: Any) -> Path:
    """Write a model like T5 v1.0, whose outputs are scaled, or, `per_layer`, like UMT5."""
    sizes = {
        "vocab_size": len(tokens()),
        "d_model": 36,
        "d_kv": 12,
        "d_ff": 51,
        "num_layers": 2,
        "num_decoder_layers": 3,
        "num_heads": 3,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 20,
        "pad_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 0,
        **changes,
    }
    if per_layer:
        spec = UMT5Loader().get_model_spec(_enliven(UMT5ForConditionalGeneration(UMT5Config(**sizes))))
    else:
        spec = T5Loader().get_model_spec(_enliven(T5ForConditionalGeneration(T5Config(**sizes))))
    return _write(directory, spec, tokens(), quantization, decoder_start_token="<blank>", bos_token="<blank>")


CONVERTED: dict[str, Callable[[Path, str | None], Path]] = {
    "marian": _of_transformers(
        partial(checkpoints.marian, **checkpoints.FEW_LAYERS), MarianTokenizer, "source.spm", "target.spm"
    ),
    "m2m100": _m2m100,
    "nllb": _of_transformers(checkpoints.nllb, NllbTokenizer, "tokenizer.json"),
    "mbart": _mbart,
    "t5": lambda directory, quantization: _t5(directory, quantization, per_layer=False),
    "umt5": lambda directory, quantization: _t5(
        directory, quantization, per_layer=True, feed_forward_proj="gated-gelu", tie_word_embeddings=False
    ),
}
QUANTIZATIONS = (None, "float16", "bfloat16", "int16", "int8", "int8_float16", "int8_bfloat16")
