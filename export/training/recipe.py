"""A training recipe: everything that determines the result of a run, read from one commented TOML file."""

import dataclasses
import hashlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class TokenizerRecipe:
    """SentencePiece: unigram pieces shared by both languages."""

    vocabulary_size: int
    num_reserved_symbols: int
    character_coverage: float


@dataclass(frozen=True, slots=True)
class DataRecipe:
    """The pairs that an epoch draws. `weights`: set -> how often an epoch draws each of its pairs on average."""

    weights: dict[str, float]
    default_weight: float
    short_words: int
    short_weights: dict[str, float]  # set -> the weight of its pairs with at most `short_words` words in the source
    max_tokens: int  # pairs with more tokens on a side are dropped
    validation_lines: int
    placeholder_share: float  # of the pairs, with reserved symbols in place of items found on both sides

    def weight(self, part: str, source: str) -> float:
        weight = self.weights.get(part, self.default_weight)
        return self.short_weights.get(part, weight) if len(source.split()) <= self.short_words else weight


@dataclass(frozen=True, slots=True)
class NoiseRecipe:
    """Shares of an epoch's pairs that are changed on both sides; see `export.training.noise`."""

    no_final_punctuation: float
    lower_case: float
    upper_case: float
    title_case: float
    leading_mark: float
    symbol_pair: float
    item: float
    joined: float

    def shares(self) -> dict[str, float]:
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class OptimizerRecipe:
    """Muon for hidden matrices, AdamW for the rest.

    The rates warm up to their peaks, stay there, and finally decay linearly to `final_rate_share` of them, so that a
    run can be ended or continued at any step.
    """

    matrix_learning_rate: float
    other_learning_rate: float
    momentum: float
    final_rate_share: float
    warmup_steps: int
    weight_decay: float
    beta2: float
    clip_norm: float
    label_smoothing: float


@dataclass(frozen=True, slots=True)
class ScheduleRecipe:
    """The length of a run, its batches, and how often to evaluate."""

    batch_tokens: int  # source and target tokens of one step, padding included
    total_steps: int
    decay_steps: int  # the last steps, over which the learning rates decay
    evaluate_every: int
    average_last: int  # average the weights of this many last evaluations; the better of mean and last is kept
    seed: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """One model: its languages, sizes, data and schedule."""

    name: str
    source_language_code: str
    target_language_code: str
    licence: str  # of the trained weights, such as CC-BY-4.0
    samples: tuple[str, ...]  # sentences translated at every evaluation
    model: dict[str, Any]  # `ModelConfig` without the vocabulary sizes, which come from the tokenizer
    tokenizer: TokenizerRecipe
    data: DataRecipe
    noise: NoiseRecipe
    optimizer: OptimizerRecipe
    schedule: ScheduleRecipe


def load_recipe(path: Path) -> Recipe:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a valid TOML file: {error}.") from error
    sections = {
        "tokenizer": TokenizerRecipe,
        "data": DataRecipe,
        "noise": NoiseRecipe,
        "optimizer": OptimizerRecipe,
        "schedule": ScheduleRecipe,
    }
    values: dict[str, Any] = dict(document)
    for name, kind in sections.items():
        values[name] = _section(kind, document.get(name, {}), f"{path}: [{name}]")
    if isinstance(values.get("samples"), list):
        values["samples"] = tuple(values["samples"])
    _check_shares(values["noise"], f"{path}: [noise]")
    if values["schedule"].decay_steps < 1:
        raise ValueError(f"{path}: [schedule]: decay_steps is {values['schedule'].decay_steps}; expected at least 1.")
    recipe: Recipe = _section(Recipe, values, str(path))
    return recipe


def recipe_fingerprint(recipe: Recipe) -> str:
    """Return the SHA-256 of what a resumed run must share with its start: all but licence, samples and run length."""
    document = dataclasses.asdict(recipe)
    del document["licence"], document["samples"]
    del document["schedule"]["total_steps"], document["schedule"]["decay_steps"]
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _check_shares(noise: NoiseRecipe, where: str) -> None:
    for name, share in noise.shares().items():
        if not 0 <= share <= 1:
            raise ValueError(f"{where}: {name} is {share}; expected a share from 0 to 1.")
    total = sum(noise.shares().values())
    if total > 1:
        raise ValueError(
            f"{where}: the shares add up to {total:.2f}; give at most 1 in total, the rest stays as it is."
        )


def _section(kind: Any, values: dict[str, Any], where: str) -> Any:
    names = {item.name for item in dataclasses.fields(kind)}
    missing, unknown = sorted(names - values.keys()), sorted(values.keys() - names)
    if missing or unknown:
        raise ValueError(f"{where} lacks {missing} and has unknown keys {unknown}.")
    accepted: dict[Any, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,)}
    for item in dataclasses.fields(kind):
        types = accepted.get(item.type)
        if types and (not isinstance(values[item.name], types) or isinstance(values[item.name], bool)):
            raise ValueError(f"{where}: {item.name} is {values[item.name]!r}; expected {types[-1].__name__}.")
    return kind(**values)
