"""The `--config` of a bare state dict: a JSON object with everything its weights leave open."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from export.architecture import ModelConfig
from export.importers.json_file import read_json
from export.importers.model_card import UNKNOWN_LICENCE
from export.importers.parts import read_part
from export.importers.word_tokenizer import WordOptions, read_options
from service.domain.options import MAX_BEAM_SIZE

# For each of these a wrong guess would go unnoticed; the target's vocabulary may say `TARGET_IDS` itself.
REQUIRED = ("source_prefix_ids", "source_eos_id")
TARGET_IDS = ("pad_id", "eos_id", "unk_id", "decoder_start_id")
_TOKENIZERS = ("tokenizer", "target_tokenizer")
_Check = tuple[Callable[[Any], bool], str]  # a condition on a value, in code and in words


def _is_number(value: Any, lowest: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= lowest


_IDS: _Check = (lambda value: isinstance(value, list) and all(map(_is_number, value)), "a list of token ids")
_COUNT: _Check = (lambda value: _is_number(value, 1), "a number from 1")
_TEXT: _Check = (lambda value: isinstance(value, str) and value != "", "a name")
_CHECKS: dict[str, _Check] = {
    "source_prefix_ids": _IDS,
    "source_eos_id": (lambda value: value is None or _is_number(value), "a token id, or null if there is none"),
    "source_pad_id": (_is_number, "a token id"),
    "attention": (lambda value: value in ("fused", "packed"), "one of fused, packed"),
    "suppressed_ids": _IDS,
    "name": _TEXT,
    "licence": _TEXT,
    "max_source_tokens": _COUNT,
    "max_output_tokens": _COUNT,
    "beam_size": (lambda value: _is_number(value, 1) and value <= MAX_BEAM_SIZE, f"a number from 1 to {MAX_BEAM_SIZE}"),
    "length_penalty": (lambda value: isinstance(value, (int, float)) and abs(value) <= 10.0, "a number from -10 to 10"),
}
# Of the model's keys, those without which nothing else can be checked.
_OF_MODEL: dict[str, _Check] = {**dict.fromkeys(TARGET_IDS, (_is_number, "a token id")), "num_heads": _COUNT}


@dataclass(frozen=True, slots=True)
class Settings:
    """The content of `--config`.

    `model` holds the keys of `ModelConfig`, unchecked, including the target's special ids. The encoder reads
    `source_prefix_ids`, the text, any `source_eos_id`; `source_pad_id` is always masked.
    """

    model: dict[str, Any]
    source_prefix_ids: tuple[int, ...] = ()
    source_eos_id: int | None = None
    source_pad_id: int | None = None  # None: same as `pad_id`
    attention: str | None = None  # how one layer's rows are queries, keys and values, where names may mean either
    suppressed_ids: tuple[int, ...] | None = None  # None: `pad_id`, `unk_id` and `decoder_start_id`
    name: str = ""
    licence: str = UNKNOWN_LICENCE
    max_source_tokens: int | None = None  # None: the number of positions
    max_output_tokens: int | None = None
    beam_size: int = 1
    length_penalty: float = 1.0
    tokenizer: WordOptions | None = None  # of word lists
    target_tokenizer: WordOptions | None = None  # None: same as `tokenizer`

    def of_model(self) -> dict[str, Any]:
        """Return the keys of `ModelConfig`, with the padding id that rows of both sides are filled with."""
        said = dict(self.model)
        if self.source_pad_id is not None and isinstance(said.get("pad_id"), int):
            said["pad_id"] = min(said["pad_id"], self.source_pad_id)  # masked; the smaller one is in both vocabularies
        return said

    def with_ids(self, known: Mapping[str, int], problems: list[str]) -> "Settings":
        """Return it with ids that it leaves to the target's vocabulary; what neither says is added to `problems`."""
        model = {**{name: known[name] for name in TARGET_IDS if name in known}, **self.model}
        problems += [
            f"--config: {name} is missing, and the tokenizer does not have it"
            for name in TARGET_IDS
            if name not in model
        ]
        return dataclasses.replace(self, model=model)


def read_settings(given: Path | Mapping[str, Any] | None, saved: Mapping[str, Any], problems: list[str]) -> Settings:
    """Read a file or its content, beside what the checkpoint says, and check all but the values for `ModelConfig`.

    Each problem is added to `problems`; the result is then only good for finding more of them.
    """
    file, content = (given.name, read_json(given)) if isinstance(given, Path) else ("--config", given or {})
    document = {**saved, **content}
    of_model = {item.name for item in dataclasses.fields(ModelConfig)}
    known = of_model | _CHECKS.keys() | set(_TOKENIZERS)
    if unknown := sorted(document.keys() - known):
        near = get_close_matches(unknown[0], known, 1, 0.75) if len(unknown) == 1 else []
        problems.append(f"{file}: {', '.join(unknown)} is unknown{''.join(f'; did you mean {each}?' for each in near)}")
    problems += [f"{file}: {name} is missing" for name in REQUIRED if name not in document]
    chosen: dict[str, Any] = {}
    for name in [name for name in document if name in _CHECKS]:
        (is_usable, expected), value = _CHECKS[name], document[name]
        if is_usable(value):
            chosen[name] = tuple(value) if isinstance(value, list) else value
        else:
            problems.append(f"{file}: {name} is {value!r:.80}, expected {expected}")
    model = {name: value for name, value in document.items() if name in of_model}
    for name, (is_usable, expected) in _OF_MODEL.items():
        if name in model and not is_usable(model[name]):
            problems.append(f"{file}: {name} is {model.pop(name)!r:.80}, expected {expected}")
    for name in _TOKENIZERS:
        if name in document:
            chosen[name] = read_part(f"{file}: {name}", partial(read_options, document[name]), problems)
    return Settings(model, **chosen)
