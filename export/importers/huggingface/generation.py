"""The generation settings of transformers' checkpoints: those that our search supports, and those it does not.

Every setting of transformers 5.23 is in one of three tables, as a test checks; those that are options of a request are
named in `service.domain.options` only.
"""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from export.architecture.config import MAX_SIZE
from service.bundle.manifest_parts import GenerationDefaults
from service.domain.options import MAX_BEAM_SIZE, OPTIONS, Option

_OPTIONS = {name: option for option in OPTIONS.values() for name, _ in option.settings}
TAKEN_OVER = _OPTIONS.keys() | frozenset(
    {
        "max_length",
        "max_new_tokens",
        "early_stopping",
        "num_beams",
        "do_sample",
        "length_penalty",
        "bad_words_ids",
        "renormalize_logits",
        "forced_bos_token_id",
        "forced_eos_token_id",
        "pad_token_id",
        "bos_token_id",
        "eos_token_id",
        "decoder_start_token_id",
    }
)
# Settings that change the output, with the values at which they don't.
_WITH_EFFECT: Mapping[str, tuple[Any, ...]] = {
    "encoder_no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1.0,),
    "num_beam_groups": (1, 0),
    "penalty_alpha": (0.0,),
    "guidance_scale": (1.0,),
    "num_return_sequences": (1,),
    "token_healing": (False,),
    "use_mtp": (False,),
    "is_assistant": (False,),
    "suppress_tokens": ([],),
    "begin_suppress_tokens": ([],),
    "forced_decoder_ids": ([],),
    "sequence_bias": (),
    "exponential_decay_length_penalty": (),
    "constraints": (),
    "force_words_ids": (),
    "watermarking_config": (),
    "max_time": (),
    "stop_strings": (),
    "prompt_lookup_num_tokens": (),
    "assistant_early_exit": (),
    "dola_layers": (),
    "compile_config": (),  # transformers itself can't read it from a file
    # Arguments for a call of `generate`; transformers rejects a file that contains them.
    "logits_processor": (),
    "stopping_criteria": (),
    "prefix_allowed_tokens_fn": (),
    "synced_gpus": (),
    "assistant_model": (),
    "streamer": (),
    "negative_prompt_ids": (),
    "negative_prompt_attention_mask": (),
}
REFUSED = {name: values for name, values in _WITH_EFFECT.items() if name not in _OPTIONS}
# Settings that do not change the output: those of sampling and other searches, which are rejected themselves, of how
# `generate` computes, and of what it returns besides the output.
WITHOUT_EFFECT = frozenset(
    {
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "top_h",
        "typical_p",
        "epsilon_cutoff",
        "eta_cutoff",
        "diversity_penalty",
        "num_assistant_tokens",
        "num_assistant_tokens_schedule",
        "assistant_confidence_threshold",
        "assistant_lookbehind",
        "assistant_ensemble_weight",
        "target_lookbehind",
        "max_matching_ngram_size",
        "speculation_type",
        "remove_invalid_values",
        "use_cache",
        "cache_implementation",
        "cache_config",
        "max_cache_len",
        "prefill_chunk_size",
        "low_memory",
        "disable_compile",
        "continuous_batching_config",
        "output_attentions",
        "output_hidden_states",
        "output_scores",
        "output_logits",
        "return_dict_in_generate",
    }
)
_MIN_LENGTH = 3  # the start token, one more, and the end


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """The behaviour of `generate` with a checkpoint, in our terms; it does not sample, which `notes` say if it should.

    `pad_id`, which only fills outputs that have ended, may be `None`. `forced_first_id` is what `forced_bos_token_id`
    puts first. `max_decoder_tokens` counts the start token and the forced ones, like transformers' `max_length`; `None`
    if not given. If it `renormalizes`, probability is redistributed among the tokens that are not suppressed.
    `defaults` that count an output's tokens still count the forced ones.
    """

    defaults: GenerationDefaults
    eos_id: int
    pad_id: int | None
    decoder_start_id: int
    forced_first_id: int | None
    suppressed_ids: tuple[int, ...]
    renormalizes: bool
    max_decoder_tokens: int | None
    notes: tuple[str, ...] = ()


def settings_of_config(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what transformers takes from `config.json` alone, its own keys (`GenerationConfig.from_model_config`)."""
    settings = {name: value for name, value in document.items() if value is not None}
    return {**settings, "_from_model_config": True}


def read_generation(
    settings: Mapping[str, Any], problems: list[str], first_ids: Collection[int] | None = ()
) -> GenerationSettings:
    """Read the settings; add what is unsupported to `problems`. `first_ids` are the languages', `None` if unknown."""
    for name, allowed in REFUSED.items():
        value = settings.get(name)
        # An integer may stand for a float; a float for a count fails in `generate`.
        if value is not None and not any(value == each and isinstance(value, int | type(each)) for each in allowed):
            problems.append(f"{name} is {_quoted(value)}; supported: {allowed[0] if allowed else 'none'}")
    eos_id = _eos_id(settings.get("eos_token_id"), problems)
    bos_id = _token_id(settings, "bos_token_id", problems)
    start_id = _token_id(settings, "decoder_start_token_id", problems)
    if start_id is None and bos_id is None and settings.get("decoder_start_token_id") is None:
        problems.append("decoder_start_token_id is missing, and bos_token_id, which would take its place")
    forced_first_id = _forced_first(settings, bos_id, first_ids, problems)
    forced_end = settings.get("forced_eos_token_id")
    if forced_end is not None and _single(forced_end) != eos_id:
        problems.append(f"forced_eos_token_id is {_quoted(forced_end)}; supported: eos_token_id, which is {eos_id}")
    stops_early = settings.get("early_stopping")
    if stops_early is not None and not isinstance(stops_early, bool):
        problems.append(f"early_stopping is {_quoted(stops_early)}; supported: true and false")
    return GenerationSettings(
        defaults=GenerationDefaults(
            beam_size=_beam_size(settings.get("num_beams"), problems),
            length_penalty=_length_penalty(settings.get("length_penalty"), problems),
            num_hypotheses=1,
            stops_early=stops_early is True,
            forces_end=forced_end is not None,
            options=_options(settings, problems),
        ),
        eos_id=eos_id,
        pad_id=_token_id(settings, "pad_token_id", problems),
        decoder_start_id=(start_id if start_id is not None else bos_id) or 0,
        forced_first_id=forced_first_id,
        suppressed_ids=_suppressed(settings.get("bad_words_ids"), eos_id, problems),
        renormalizes=settings.get("renormalize_logits") is True,
        max_decoder_tokens=_max_length(settings, problems),
        notes=_notes(settings.get("do_sample"), problems),
    )


def _notes(do_sample: Any, problems: list[str]) -> tuple[str, ...]:
    if do_sample is not None and not (isinstance(do_sample, int) and do_sample in (0, 1)):
        problems.append(f"do_sample is {_quoted(do_sample)}; supported: true, read as false, and false")
    return ("do_sample is true, and is read as false: the most probable outputs are searched for",) if do_sample else ()


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]} ..."


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SIZE


def _single(value: Any) -> Any:
    """Return the token id, given alone or as the only item of a list; `None` if it is neither."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if _is_id(value) else None


def _eos_id(value: Any, problems: list[str]) -> int:
    found = _single(value)
    if value is None:
        problems.append("eos_token_id is missing")
    elif found is None:
        problems.append(
            f"eos_token_id is {_quoted(value)}; expected one token id: choose it with --set eos_token_id=ID"
        )
    return found or 0


def _token_id(settings: Mapping[str, Any], name: str, problems: list[str]) -> int | None:
    """Return the id, which transformers requires without a list here; `None` if missing or added to `problems`."""
    value = settings.get(name)
    if value is not None and not _is_id(value):
        problems.append(f"{name} is {_quoted(value)}; expected a token id")
        return None
    return value


def _forced_first(
    settings: Mapping[str, Any], bos_id: int | None, first_ids: Collection[int] | None, problems: list[str]
) -> int | None:
    value = settings.get("forced_bos_token_id")
    if settings.get("_from_model_config") and settings.get("force_bos_token_to_be_generated") and bos_id is not None:
        value = bos_id  # as BART's first configurations have it
    if value is not None and not (_is_id(value) and (first_ids is None or value in first_ids)):
        supported = "a token id" if first_ids is None else "the languages' tokens" if first_ids else "none"
        problems.append(f"forced_bos_token_id is {_quoted(value)}; supported: {supported}")
    return value if _is_id(value) else None


def _options(settings: Mapping[str, Any], problems: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for option in OPTIONS.values():
        given = [(name, besides) for name, besides in option.settings if settings.get(name) is not None]
        for name, besides in reversed(given):  # the first one counts
            value = settings[name]
            if not _suits(option, value):
                problems.append(f"{name} is {_quoted(value)}; supported: {option.allowed()}")
                continue
            found[option.name] = max(option.kind(value) - besides, 0) if option.counts_output else option.kind(value)
    return {name: value for name, value in found.items() if value != OPTIONS[name].default}


def _suits(option: Option, value: Any) -> bool:
    """Return whether `generate` takes the value, and we do: an integer may stand for a float that changes nothing."""
    is_of_kind = type(value) is option.kind or (type(value) is int and value == option.default)
    return is_of_kind and option.permits(value, MAX_SIZE if option.high is None else option.high)


def without_prefix(defaults: GenerationDefaults, longest_prefix: int, max_output_tokens: int) -> GenerationDefaults:
    """Return the defaults with options that count the output's own tokens only, and no more than it may have."""
    options = {
        name: min(max(value - longest_prefix, 0), max_output_tokens) if OPTIONS[name].counts_output else value
        for name, value in defaults.options.items()
    }
    return dataclasses.replace(
        defaults, options={name: value for name, value in options.items() if value != OPTIONS[name].default}
    )


def _beam_size(value: Any, problems: list[str]) -> int:
    if value is None:
        return 1
    if not _is_id(value) or not 1 <= value <= MAX_BEAM_SIZE:
        problems.append(f"num_beams is {_quoted(value)}; supported: 1 to {MAX_BEAM_SIZE}")
        return 1
    return int(value)


def _length_penalty(value: Any, problems: list[str]) -> float:
    if value is None:
        return 1.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not -10 <= value <= 10:
        problems.append(f"length_penalty is {_quoted(value)}; supported: -10 to 10")
        return 1.0
    return float(value)


def _suppressed(value: Any, eos_id: int, problems: list[str]) -> tuple[int, ...]:
    """Return the tokens of `bad_words_ids`, without the end-of-sentence token, as in transformers."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(ids, list) and _single(ids) is not None for ids in value):
        problems.append(f"bad_words_ids is {_quoted(value)}; supported: single tokens, as in [[58100]]")
        return ()
    suppressed = tuple(sorted({ids[0] for ids in value} - {eos_id}))
    if not suppressed:
        problems.append(f"bad_words_ids is {_quoted(value)}; expected a token besides eos_token_id, or no such setting")
    return suppressed


def _max_length(settings: Mapping[str, Any], problems: list[str]) -> int | None:
    """Return the file's value, even if it is 20, transformers' own default limit."""
    name = "max_length" if settings.get("max_new_tokens") is None else "max_new_tokens"
    value = settings.get(name)
    if value is None:
        return None
    if not _is_id(value) or value < _MIN_LENGTH:
        problems.append(f"{name} is {_quoted(value)}; expected {_MIN_LENGTH} or more")
        return None
    return int(value) + (name == "max_new_tokens")
