"""Generation settings: which are adopted, which have no effect, and that all others are rejected."""

from typing import Any

import pytest
from transformers import GenerationConfig

from export.importers.huggingface.generation import (
    REFUSED,
    TAKEN_OVER,
    WITHOUT_EFFECT,
    read_generation,
    settings_of_config,
    without_prefix,
)
from service.bundle.manifest_parts import GenerationDefaults

IDS = {"eos_token_id": 0, "pad_token_id": 9, "decoder_start_token_id": 9}


ABOUT_THE_FILE = {"_from_model_config", "transformers_version"}
OF_OTHER_RELEASES = {"forced_decoder_ids"}
ARGUMENTS_OF_GENERATE = {
    "logits_processor",
    "stopping_criteria",
    "prefix_allowed_tokens_fn",
    "synced_gpus",
    "assistant_model",
    "streamer",
    "negative_prompt_ids",
    "negative_prompt_attention_mask",
}


def problems_with(settings: dict[str, Any]) -> list[str]:
    problems: list[str] = []
    read_generation({**IDS, **settings}, problems)
    return problems


def test_each_setting_of_transformers_is_in_one_table() -> None:
    """Fails if a release adds one: decide how it affects the output."""
    tables = [*TAKEN_OVER, *REFUSED, *WITHOUT_EFFECT]
    assert len(tables) == len(set(tables))
    assert set(tables) == {*vars(GenerationConfig())} - ABOUT_THE_FILE | OF_OTHER_RELEASES | ARGUMENTS_OF_GENERATE


def test_the_defaults_of_transformers_are_supported() -> None:
    assert not problems_with(dict.fromkeys(vars(GenerationConfig())) | IDS)


@pytest.mark.parametrize("name", REFUSED)
def test_each_refused_setting_is_named_once(name: str) -> None:
    for value in (7, 0.25, "x", {}, [[3]], {"a": 1}):
        assert problems_with({name: value}) == [
            f"{name} is {value!r}; supported: {REFUSED[name][0] if REFUSED[name] else 'none'}"
        ]
    for value in REFUSED[name]:
        assert not problems_with({name: value})


@pytest.mark.parametrize("name", sorted(TAKEN_OVER - {"renormalize_logits"}))
@pytest.mark.parametrize("value", ["x", -1, 2**70, 0.5, True, [], {}, [True], [[0, True]]])
def test_what_is_taken_over_has_the_right_kind(name: str, value: Any) -> None:
    accepted = (name, repr(value)) in {
        ("early_stopping", "True"),
        ("length_penalty", "-1"),
        ("length_penalty", "0.5"),
        ("repetition_penalty", "0.5"),
    }
    assert [problem.split()[0] for problem in problems_with({name: value})] == [] if accepted else [name]


def test_what_is_not_said_is_as_in_transformers() -> None:
    found = read_generation({**IDS, "eos_token_id": [0]}, [])
    assert found.defaults == GenerationDefaults()
    assert (found.eos_id, found.max_decoder_tokens) == (0, None)
    assert read_generation({**IDS, "max_length": 20}, []).max_decoder_tokens == 20
    assert read_generation({**IDS, "pad_token_id": None}, []).pad_id is None
    assert read_generation({"eos_token_id": 0, "bos_token_id": 4}, []).decoder_start_id == 4
    assert read_generation({**IDS, "max_new_tokens": 30, "max_length": 512}, []).max_decoder_tokens == 31


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"repetition_penalty": 1.3}, {"repetition_penalty": 1.3}),
        ({"no_repeat_ngram_size": 3}, {"no_repeat_ngram_size": 3}),
        ({"min_new_tokens": 5}, {"min_output_tokens": 5}),
        ({"min_length": 5}, {"min_output_tokens": 4}),  # it counts the start token
        ({"min_new_tokens": 5, "min_length": 9}, {"min_output_tokens": 5}),
        ({"min_new_tokens": 0, "min_length": 9}, {}),
        ({"repetition_penalty": 1, "no_repeat_ngram_size": 0, "min_length": 1}, {}),
    ],
)
def test_settings_that_are_options_of_a_request_become_their_defaults(
    settings: dict[str, Any], options: dict[str, float]
) -> None:
    problems: list[str] = []
    assert read_generation({**IDS, **settings}, problems).defaults == GenerationDefaults(options=options)
    assert not problems


def test_what_counts_tokens_counts_no_prefix_and_stays_within_the_limit() -> None:
    defaults = GenerationDefaults(options={"min_output_tokens": 9, "no_repeat_ngram_size": 3})
    assert without_prefix(defaults, 1, 20).options == {"min_output_tokens": 8, "no_repeat_ngram_size": 3}
    assert without_prefix(defaults, 1, 5).options == {"min_output_tokens": 5, "no_repeat_ngram_size": 3}
    assert without_prefix(defaults, 9, 5).options == {"no_repeat_ngram_size": 3}


def test_what_config_json_says_by_itself() -> None:
    settings = settings_of_config({**IDS, "num_beams": 6, "max_length": None, "d_model": 512})
    problems: list[str] = []
    assert read_generation(settings, problems).defaults == GenerationDefaults(beam_size=6)
    assert not problems
    read_generation(settings_of_config({**IDS, "bos_token_id": 3, "force_bos_token_to_be_generated": True}), problems)
    assert problems == ["forced_bos_token_id is 3; supported: none"]


def test_a_forced_first_token_is_a_languages() -> None:
    problems: list[str] = []
    read_generation({**IDS, "forced_bos_token_id": 7}, problems, first_ids={7, 8})
    read_generation({**IDS, "forced_bos_token_id": 9}, problems, first_ids=None)
    assert not problems
    read_generation({**IDS, "forced_bos_token_id": 9}, problems, first_ids={7, 8})
    assert problems == ["forced_bos_token_id is 9; supported: the languages' tokens"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"eos_token_id": [0, 1]},
            "eos_token_id is [0, 1]; expected one token id: choose it with --set eos_token_id=ID",
        ),
        ({"eos_token_id": None}, "eos_token_id is missing"),
        ({"pad_token_id": [9]}, "pad_token_id is [9]; expected a token id"),
        ({"decoder_start_token_id": [9]}, "decoder_start_token_id is [9]; expected a token id"),
        ({"decoder_start_token_id": None}, "decoder_start_token_id is missing, and bos_token_id"),
        ({"forced_bos_token_id": 5}, "forced_bos_token_id is 5; supported: none"),
        ({"bad_words_ids": []}, "bad_words_ids is []; expected a token besides eos_token_id"),
        ({"bad_words_ids": [[0]]}, "bad_words_ids is [[0]]; expected a token besides eos_token_id"),
        ({"early_stopping": "never"}, "early_stopping is 'never'; supported: true and false"),
        ({"forced_eos_token_id": 5}, "forced_eos_token_id is 5; supported: eos_token_id, which is 0"),
        ({"bad_words_ids": [[1, 2]]}, "supported: single tokens"),
        ({"encoder_repetition_penalty": 1.3}, "encoder_repetition_penalty is 1.3; supported: 1"),
        ({"repetition_penalty": 2}, "repetition_penalty is 2; supported: above 0 to 10"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0; supported: above 0 to 10"),
        ({"no_repeat_ngram_size": 101}, "no_repeat_ngram_size is 101; supported: 0 to 100"),
        ({"min_length": 4.0}, "min_length is 4.0; supported: 0 to the model's limit"),
        ({"do_sample": "yes"}, "do_sample is 'yes'; supported: true, read as false, and false"),
        ({"suppress_tokens": [4]}, "suppress_tokens is [4]; supported: []"),
        ({"num_beams": True}, "num_beams is True; supported: 1 to 8"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
        ({"max_length": 2}, "max_length is 2; expected 3 or more"),
    ],
)
def test_what_is_not_supported_is_named(settings: dict[str, Any], message: str) -> None:
    problems = problems_with(settings)
    assert [problem for problem in problems if message in problem], problems
