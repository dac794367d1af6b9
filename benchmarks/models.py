"""The measured models in the format that each engine reads; missing ones are built, existing ones are kept."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.bundle.checksums import file_sha256, staleness
from service.bundle.manifest_parts import LanguagePair, Limits, TokenizerSpec

if TYPE_CHECKING:
    from export.architecture.transformer import Transformer

SHIPPED_CHECKPOINT = Path("checkpoints/en-de")
SHIPPED_BUNDLES = {"float32": Path("build/float32/en-de/1"), "int8": Path("models/en-de/1")}
FOLDER = Path("build/bench/models")
PRECISIONS = ("float32", "int8")

BASE_SOURCE_TOKENS = 25
BASE_OUTPUT_TOKENS = 30
_BASE_SEED = 0
# Larger matrices than at the start of training, so that every token depends on all before it and no arg-max is a tie.
# Not four times as large: layers would amplify the last bit, which depends on the CPU, to 0.5 % of the logits' range.
_BASE_GAIN = 3.0
# The sources that build a bundle: it is rebuilt when one of them changes.
_MAKERS = ("export/architecture", "export/graphs", "export/quantization", "export/quantize.py", "benchmarks/models.py")


@dataclass(frozen=True, slots=True)
class BenchModel:
    """A model by name: `en-de`, the shipped one, or a published shape with random weights.

    `fixed_output_tokens` is 0 if the model itself ends its outputs. `shape` has the sizes of `ModelConfig` that are not
    Marian's base ones. A large model is built only when it is asked for, in int8.
    """

    name: str
    checkpoint: Path
    ct2: Path
    vocabulary_size: int
    eos_id: int
    max_output_tokens: int
    fixed_output_tokens: int = 0
    shape: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_large(self) -> bool:
        """Return whether it takes minutes and gigabytes to build and to run in float32."""
        return bool(self.shape)

    def bundle(self, precision: str) -> Path:
        """Return the folder of our bundle in a precision."""
        if self.name == "en-de":
            return SHIPPED_BUNDLES[precision]
        return FOLDER / f"{self.name}-{precision}" / self.name / "1"


EN_DE = BenchModel("en-de", SHIPPED_CHECKPOINT, FOLDER / "en-de-ct2", 8192, 2, 128)


def _random(name: str, vocabulary_size: int, **shape: int) -> BenchModel:
    return BenchModel(
        name,
        FOLDER / f"{name}-checkpoint",
        FOLDER / f"{name}-ct2",
        vocabulary_size,
        2,
        BASE_OUTPUT_TOKENS,
        BASE_OUTPUT_TOKENS,
        shape,
    )


BASE = _random("base", 32_000)
BIG = _random("big", 58_000, d_model=1024, d_ff=4096, num_heads=16)  # OPUS-MT tc-big
NLLB = _random(  # NLLB-200-distilled-600M
    "nllb", 256_206, d_model=1024, d_ff=4096, num_heads=16, num_encoder_layers=12, num_decoder_layers=12
)
MODELS = {model.name: model for model in (BASE, EN_DE, BIG, NLLB)}
DEFAULT_MODELS = tuple(model.name for model in MODELS.values() if not model.is_large)


class NotPrepared(Exception):
    """A model's format is missing and can't be built here; the message says what to do."""


def prepare(model: BenchModel, precision: str, say: Callable[[str], None]) -> Path:
    """Return our bundle of the model, built first if it is missing or stale.

    Raises:
        NotPrepared: the shipped bundle is missing; it is built by the Makefile, not here.
    """
    bundle = model.bundle(precision)
    if model.name == "en-de":
        reason = staleness(bundle, model.checkpoint / "model.safetensors")
        if reason is not None:
            raise NotPrepared(f"{reason}; run 'make export' first.")
        return bundle
    if _is_fresh(bundle.parents[1]):
        return bundle
    _write_base_checkpoint(model)
    say(f"making {bundle}: this takes a minute or two, once")
    _write_base_bundle(model, bundle, precision, say)
    _mark_fresh(bundle.parents[1])
    return bundle


def prepare_checkpoint(model: BenchModel) -> Path:
    """Return the native checkpoint's folder."""
    if model.name != "en-de":
        _write_base_checkpoint(model)
    return model.checkpoint


def prepare_ct2(model: BenchModel, say: Callable[[str], None]) -> Path:
    """Return CTranslate2's form of the model, float32; it quantizes when it loads."""
    weights = file_sha256(prepare_checkpoint(model) / "model.safetensors")
    mark = model.ct2 / "made-from.txt"
    if mark.exists() and mark.read_text() == weights:
        return model.ct2
    say(f"making {model.ct2}")
    from tests.references.ct2 import write_ct2  # torch and transformers: only when needed

    write_ct2(load_transformer(model.checkpoint), model.ct2)
    mark.write_text(weights)
    return model.ct2


def load_transformer(checkpoint: Path) -> "Transformer":
    """Return the torch model of a native checkpoint, in evaluation mode; its tokenizer is not read."""
    from safetensors.torch import load_file

    from export.architecture import ModelConfig
    from export.architecture.transformer import Transformer

    config = ModelConfig.from_document(json.loads((checkpoint / "config.json").read_text(encoding="utf-8")))
    model = Transformer(config)
    model.load_weights(load_file(checkpoint / "model.safetensors"))
    return model.eval()


def random_transformer(model: BenchModel, gain: float = _BASE_GAIN) -> "Transformer":
    """Return a model with the random weights of a published shape; `gain` multiplies matrices of layers."""
    import torch

    from export.architecture import ModelConfig
    from export.architecture.transformer import Transformer
    from tests.references.m2m100 import POSITIONS

    torch.manual_seed(_BASE_SEED)
    transformer = Transformer(
        ModelConfig(
            source_vocabulary_size=model.vocabulary_size,
            target_vocabulary_size=model.vocabulary_size,
            norm="pre",
            final_norm=True,
            share_embeddings=True,
            tie_projection=True,
            positions=POSITIONS,
            **model.shape,
        )
    ).eval()
    with torch.no_grad():
        for name, parameter in transformer.named_parameters():
            if parameter.dim() > 1 and "tokens" not in name and name != "projection.weight":
                parameter.mul_(gain)
        transformer.projection.weight[[0, 1, 3]] = 0.0  # begin, pad and unknown are never the arg-max
    return transformer


def _write_base_checkpoint(model: BenchModel) -> None:
    if (model.checkpoint / "model.safetensors").exists() and _is_fresh(model.checkpoint):
        return
    from export.importers.native.folder import CheckpointInfo
    from export.training.checkpoint import save_checkpoint

    transformer = random_transformer(model)
    info = CheckpointInfo(model.name, "en", "de", max_source_tokens=128, max_output_tokens=model.max_output_tokens)
    save_checkpoint(transformer, info, SHIPPED_CHECKPOINT / "tokenizer.model", model.checkpoint)
    _mark_fresh(model.checkpoint)


def _write_base_bundle(model: BenchModel, destination: Path, precision: str, say: Callable[[str], None]) -> None:
    """Write a bundle in which the end-of-sentence token is suppressed, so that every output has the maximum length."""
    from export.convert import write_bundle
    from export.importers.imported import ImportedCheckpoint

    def load() -> ImportedCheckpoint:
        transformer = load_transformer(model.checkpoint)
        config = transformer.config
        return ImportedCheckpoint(
            name=model.name,
            model=transformer.stored(),
            tokenizer=TokenizerSpec(
                "sentencepiece",
                "tokenizer.model",
                config.pad_id,
                config.eos_id,
                config.unk_id,
                config.decoder_start_id,
            ),
            tokenizer_files={"tokenizer.model": model.checkpoint / "tokenizer.model"},
            languages=(LanguagePair("en", "de"),),
            limits=Limits(128, model.max_output_tokens),
            checkpoint_sha256=file_sha256(model.checkpoint / "model.safetensors"),
            suppressed_ids=tuple(sorted({0, config.pad_id, config.eos_id, config.unk_id})),
        )

    write_bundle(load, destination, precision=precision, say=say, force=True)


def _fingerprint() -> str:
    """Return a fingerprint of the sources that build bundles."""
    digest = hashlib.sha256()
    for maker in _MAKERS:
        path = Path(maker)
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _is_fresh(folder: Path) -> bool:
    mark = _mark(folder)
    return folder.is_dir() and mark.exists() and mark.read_text() == _fingerprint()


def _mark_fresh(folder: Path) -> None:
    _mark(folder).write_text(_fingerprint())


def _mark(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.made-by")  # beside it: a repository of bundles contains nothing else
