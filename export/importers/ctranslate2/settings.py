"""CTranslate2's knowledge of a model besides its variables: special tokens, and how texts begin and end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from export.importers.ctranslate2.variables import Variables

_FIRST_WITH_CONFIG = 6  # of the versions of `model.bin`: before, the settings were variables
_TEXTS = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}


@dataclass(frozen=True, slots=True)
class Settings:
    """`start_token` is what the decoder begins with; `None`: callers have to say it. `epsilon`: `None` if not given."""

    unk_token: str
    bos_token: str
    eos_token: str
    start_token: str | None
    adds_source_bos: bool
    adds_source_eos: bool
    epsilon: float | None


def read_settings(config: Mapping[str, Any], variables: Variables, problems: list[str]) -> Settings:
    """Return the settings of `config.json`, or of older models' variables; add what is unusable to `problems`."""
    values = dict(config) if variables.stored.version >= _FIRST_WITH_CONFIG else _of_variables(variables)
    for name in ("multi_query_attention", "quantization_type"):
        if values.get(name):
            problems.append(f"{name} is {str(values[name])[:60]!r}, which is not supported")
    for name, default in _TEXTS.items():
        value = values.get(name)
        if value is not None and not isinstance(value, str):
            problems.append(f"{name} is {str(value)[:60]!r}, expected a token")
        values[name] = value if isinstance(value, str) else default
    start = values.get("decoder_start_token", values["bos_token"])
    if start is not None and not isinstance(start, str):
        problems.append(f"decoder_start_token is {str(start)[:60]!r}, expected a token or null")
        start = None
    epsilon = values.get("layer_norm_epsilon")
    if epsilon is not None and (isinstance(epsilon, bool) or not isinstance(epsilon, int | float)):
        problems.append(f"layer_norm_epsilon is {str(epsilon)[:60]!r}, expected a number or null")
        epsilon = None
    return Settings(
        unk_token=values["unk_token"],
        bos_token=values["bos_token"],
        eos_token=values["eos_token"],
        start_token=start,
        adds_source_bos=bool(values.get("add_source_bos", False)),
        adds_source_eos=bool(values.get("add_source_eos", False)),
        epsilon=epsilon,
    )


def _of_variables(variables: Variables) -> dict[str, Any]:
    """Return what `SequenceToSequenceModel::initialize` (src/models/sequence_to_sequence.cc) makes of variables."""
    values: dict[str, Any] = {name: variables.text(name) or default for name, default in _TEXTS.items()}
    values["add_source_bos"] = variables.number("with_source_bos")
    values["add_source_eos"] = variables.number("with_source_eos")
    starts_with_bos = variables.number("with_target_bos")
    values["decoder_start_token"] = values["eos_token" if starts_with_bos == 0 else "bos_token"]
    if variables.number("user_decoder_start_tokens"):
        values["decoder_start_token"] = None
    return values
