"""The generation settings of transformers' checkpoints: what our search does as well, and what it does not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.bundle.manifest import GenerationDefaults
from service.translation import MAX_BEAM_SIZE

# Settings that change the output, with the values at which they don't.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "do_sample": (False,),
    "min_length": (0,),
    "min_new_tokens": (),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "repetition_penalty": (1, 1.0),
    "encoder_repetition_penalty": (1, 1.0),
    "num_beam_groups": (1,),
    "diversity_penalty": (0, 0.0),
    "penalty_alpha": (),
    "guidance_scale": (1, 1.0),
    "suppress_tokens": ([],),
    "begin_suppress_tokens": ([],),
    "forced_decoder_ids": ([],),
    "sequence_bias": ({},),
    "exponential_decay_length_penalty": (),
    "constraints": (),
    "force_words_ids": (),
    "typical_p": (1, 1.0),
    "max_time": (),
    "stop_strings": (),
}
_DEFAULT_MAX_LENGTH = 20  # transformers' own, which no translation model means


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """What `generate` does with a checkpoint, in our terms.

    `max_decoder_tokens` counts the start token and the forced ones, as transformers' `max_length` does; `None` where
    the checkpoint does not say. `renormalizes` means that probabilities are shared out anew among the tokens that are
    not suppressed.
    """

    defaults: GenerationDefaults
    eos_id: int
    pad_id: int
    decoder_start_id: int
    suppressed_ids: tuple[int, ...]
    renormalizes: bool
    max_decoder_tokens: int | None


def read_generation(settings: Mapping[str, Any], problems: list[str]) -> GenerationSettings:
    """Take what `config.json` and `generation_config.json` say together; what can't be done goes to `problems`."""
    for name, allowed in _NEUTRAL.items():
        value = settings.get(name)
        if value is not None and value not in allowed:
            problems.append(f"generation setting {name} is {value!r}; supported is {allowed[0] if allowed else 'none'}")
    eos_id = _one_id(settings, "eos_token_id", problems)
    forced_end = settings.get("forced_eos_token_id")
    if forced_end is not None and forced_end not in (eos_id, [eos_id]):
        problems.append(f"forced_eos_token_id is {forced_end!r}; supported is eos_token_id, which is {eos_id}")
    stops_early = settings.get("early_stopping")
    if stops_early not in (None, False, True):
        problems.append(f"early_stopping is {stops_early!r}; supported are true and false")
    return GenerationSettings(
        defaults=GenerationDefaults(
            beam_size=int(_number(settings, "num_beams", 1, 1, MAX_BEAM_SIZE, problems)),
            length_penalty=float(_number(settings, "length_penalty", 1.0, -10, 10, problems)),
            num_hypotheses=1,
            stops_early=stops_early is True,
            forces_end=forced_end is not None,
        ),
        eos_id=eos_id,
        pad_id=_one_id(settings, "pad_token_id", problems),
        decoder_start_id=_one_id(settings, "decoder_start_token_id", problems),
        suppressed_ids=_suppressed(settings.get("bad_words_ids"), eos_id, problems),
        renormalizes=settings.get("renormalize_logits") is True,
        max_decoder_tokens=_max_length(settings, problems),
    )


def _one_id(settings: Mapping[str, Any], name: str, problems: list[str]) -> int:
    value = settings.get(name)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        problems.append(f"{name} is {value!r}; expected one token id")
        return 0
    return value


def _number(
    settings: Mapping[str, Any], name: str, default: float, low: float, high: float, problems: list[str]
) -> float:
    value = settings.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        problems.append(f"{name} is {value!r}; supported is {low} to {high}")
        return default
    return value


def _suppressed(value: Any, eos_id: int, problems: list[str]) -> tuple[int, ...]:
    """The tokens of `bad_words_ids`; transformers leaves the end-of-sentence token out of it, and so do we."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(
        isinstance(ids, list) and len(ids) == 1 and isinstance(ids[0], int) and ids[0] >= 0 for ids in value
    ):
        problems.append(f"bad_words_ids is {str(value)[:80]}; supported are single tokens, as in [[58100]]")
        return ()
    return tuple(sorted({ids[0] for ids in value} - {eos_id}))


def _max_length(settings: Mapping[str, Any], problems: list[str]) -> int | None:
    new_tokens = settings.get("max_new_tokens")
    value = settings.get("max_length") if new_tokens is None else new_tokens
    if value is None or (new_tokens is None and value == _DEFAULT_MAX_LENGTH):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 3:
        problems.append(f"{'max_length' if new_tokens is None else 'max_new_tokens'} is {value!r}; expected 3 or more")
        return None
    return value if new_tokens is None else value + 1
