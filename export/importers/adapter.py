"""Merges a PEFT adapter into the weights of its base model: plain LoRA on linear layers, and modules saved as a whole.

Same bits as merge_and_unload of peft 0.21 (`LoraConfig`, `get_pattern_key`, `Linear.get_delta_weight`).
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import re2

from export.architecture.stored import Array, as_float32
from export.importers.json_file import read_json
from export.importers.weight_files import read_state_dict

CONFIG_NAME = "adapter_config.json"
WEIGHTS_NAMES = ("adapter_model.safetensors", "adapter_model.bin")
_PREFIX = "base_model.model."
# Settings that change what is trained, or how, and not what the weights mean.
_WITHOUT_EFFECT = frozenset(
    {
        *("peft_type", "task_type", "base_model_name_or_path", "revision", "inference_mode", "auto_mapping"),
        *("peft_version", "target_modules", "exclude_modules", "layers_to_transform", "layers_pattern"),
        *("lora_dropout", "loftq_config", "eva_config", "corda_config", "lora_ga_config", "megatron_core"),
        *("megatron_config", "qalora_group_size", "runtime_config", "ensure_weight_tying", "parent_library"),
        *("r", "lora_alpha", "rank_pattern", "alpha_pattern", "use_rslora", "fan_in_fan_out", "modules_to_save"),
    }
)
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "bias": ("none",),
    "init_lora_weights": (True, False, "gaussian", "eva", "orthogonal"),  # others change the base's weights, too
}
_QUIET = re2.Options()  # these patterns are of strangers, and re2 takes linear time
_QUIET.log_errors = False
_LORA = re.compile(r"(?P<module>.+)\.lora_(?P<part>[AB])\.weight")


@dataclass(frozen=True, slots=True)
class _Settings:
    """`alpha`, or the first of the `alphas` that fits a module scales its product, by the rank or its root."""

    alpha: float
    alphas: Sequence[tuple[Any, float]]
    is_root: bool
    is_transposed: bool


def is_adapter(directory: Path) -> bool:
    return (directory / CONFIG_NAME).is_file()


def merged(directory: Path, weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return the base model's `weights`, those that the adapter in `directory` changes in float32."""
    document = read_json(directory / CONFIG_NAME)
    problems: list[str] = []
    settings = _read_settings(document, problems)
    file = next((directory / name for name in WEIGHTS_NAMES if (directory / name).is_file()), None)
    if file is None:
        problems.append(f"its weights, {' or '.join(WEIGHTS_NAMES)}, are missing")
    if problems or file is None:
        raise ValueError("; ".join(problems))
    result = dict(weights)
    pairs: dict[str, dict[str, Array]] = {}
    for full_name, value in read_state_dict(file).items():
        name = full_name.removeprefix(_PREFIX)
        if found := _LORA.fullmatch(name):
            pairs.setdefault(found["module"], {})[found["part"]] = as_float32(value)
        elif "lora_" in name:
            problems.append(f"{name} is not plain LoRA on a linear layer")
        elif (known := _known(name, weights)) is None:
            problems.append(f"the base model has no {name}")
        elif value.shape != weights[known].shape:
            problems.append(f"{name} has shape {tuple(value.shape)}, the base model's {tuple(weights[known].shape)}")
        else:
            result[known] = value
    for module, pair in pairs.items():
        known = _known(f"{module}.weight", weights)
        if known is None or pair.keys() != {"A", "B"}:
            problems.append(f"the base model has no {module}.weight" if known is None else f"{module} lacks a matrix")
            continue
        delta = _delta(module, pair["A"], pair["B"], settings)
        if delta is None or delta.shape != weights[known].shape:
            problems.append(f"the matrices of {module} do not fit the base model's {tuple(weights[known].shape)}")
            continue
        result[known] = as_float32(result[known]) + delta
    if problems:
        raise ValueError("; ".join(problems))
    return result


def _read_settings(document: Mapping[str, Any], problems: list[str]) -> _Settings:
    kind = document.get("peft_type")
    if kind != "LORA":
        problems.append(f"peft_type is {str(kind)[:60]!r}; only LORA can be merged")
    for name, value in sorted(document.items()):
        allowed = _NEUTRAL.get(name, ())
        if name not in _WITHOUT_EFFECT and value not in (None, False, [], {}, "", *allowed):
            supported = f"supported: {', '.join(map(str, allowed))}" if allowed else "only plain LoRA can be merged"
            problems.append(f"{name} is {repr(value)[:60]}; {supported}")
    alpha, alphas = document.get("lora_alpha", 8), document.get("alpha_pattern") or {}
    if not _are_numbers([alpha]) or not isinstance(alphas, dict) or not _are_numbers(alphas.values()):
        problems.append("lora_alpha or alpha_pattern is not numeric")
        alpha, alphas = 1, {}
    compiled: list[tuple[Any, float]] = []
    for pattern, value in alphas.items():
        try:
            compiled.append((re2.compile(rf"(.*\.)?({pattern})", _QUIET), value))
        except (re2.error, UnicodeEncodeError) as error:
            reason = error.args[0].decode("utf-8", "replace") if isinstance(error, re2.error) else "it is not Unicode"
            problems.append(f"alpha_pattern {pattern[:60]!r}: {reason}")
    root, transposed = document.get("use_rslora") is True, document.get("fan_in_fan_out") is True
    return _Settings(float(alpha), compiled, root, transposed)


def _are_numbers(values: Any) -> bool:
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def _known(name: str, weights: Mapping[str, Array]) -> str | None:
    """Return the name in `weights`, where the model's own prefix may be missing, or be there in addition."""
    choices = (name, name.removeprefix("model."), f"model.{name}")
    return next((each for each in choices if each in weights), None)


def _delta(module: str, down: Array, up: Array, settings: _Settings) -> Array | None:
    """Return what is added to a weight, (out, in) or transposed; `None` if A and B don't fit each other."""
    if down.ndim != 2 or up.ndim != 2 or up.shape[1] != down.shape[0]:
        return None
    rank = down.shape[0]
    own = (value for pattern, value in settings.alphas if pattern.fullmatch(module))
    alpha = next(own, settings.alpha)
    product = (up @ down) * np.float32(alpha / (math.sqrt(rank) if settings.is_root else rank))
    return product.T if settings.is_transposed else product
