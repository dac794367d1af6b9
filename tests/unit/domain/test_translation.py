"""What a caller may ask for, and what becomes of it."""

import math
from dataclasses import replace
from typing import Any

import pytest

from service.domain.errors import InvalidRequest
from service.domain.translation import DecodingOptions, RequestedOptions

DEFAULTS = DecodingOptions(beam_size=4, length_penalty=1.0, num_hypotheses=2, max_output_tokens=100)


def resolve(**asked: Any) -> DecodingOptions:
    return RequestedOptions(**asked).resolve(DEFAULTS)


def test_who_asks_for_nothing_gets_the_models_defaults() -> None:
    assert resolve() == DEFAULTS


def test_more_hypotheses_widen_the_beam_and_a_narrow_beam_gives_fewer() -> None:
    assert resolve(num_hypotheses=6) == replace(DEFAULTS, beam_size=6, num_hypotheses=6)
    assert resolve(beam_size=1) == replace(DEFAULTS, beam_size=1, num_hypotheses=1)


def test_a_temperature_means_sampling_without_a_beam() -> None:
    sampled = resolve(temperature=0.5, seed=9)
    assert sampled == replace(DEFAULTS, beam_size=1, num_hypotheses=1, temperature=0.5, seed=9)
    assert sampled.is_sampled
    assert resolve(temperature=0.5, num_hypotheses=8).num_hypotheses == 8
    assert resolve(temperature=0.5, num_hypotheses=8).beam_size == 1


def test_a_temperature_of_zero_is_search() -> None:
    assert resolve(temperature=0.0) == DEFAULTS


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": math.inf}, "temperature"),
        ({"temperature": 1.0, "top_k": 0}, "top_k"),
        ({"temperature": 1.0, "top_k": 65}, "top_k"),
        ({"temperature": 1.0, "top_p": 0.0}, "top_p"),
        ({"temperature": 1.0, "top_p": 1.01}, "top_p"),
        ({"temperature": 1.0, "top_p": math.nan}, "top_p"),
        ({"temperature": 1.0, "beam_size": 2}, "beam_size"),
        ({"temperature": 1.0, "num_hypotheses": 9}, "num_hypotheses"),
        ({"top_k": 5}, "top_k"),
        ({"temperature": 0.0, "top_p": 0.5}, "top_p"),
        ({"num_hypotheses": 9}, "num_hypotheses"),
        ({"beam_size": 2, "num_hypotheses": 3}, "num_hypotheses"),
        ({"max_output_tokens": 101}, "max_output_tokens"),
        ({"max_length_ratio": -0.5}, "max_length_ratio"),
        ({"max_length_ratio": 101.0}, "max_length_ratio"),
        ({"max_length_ratio": math.nan}, "max_length_ratio"),
        ({"max_repeats": -1}, "max_repeats"),
        ({"max_repeats": 101}, "max_repeats"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"options\.{field} is ") as raised:
        resolve(**asked)
    assert raised.value.field == f"options.{field}"


def test_guards_are_off_unless_somebody_asks() -> None:
    assert (DEFAULTS.max_length_ratio, DEFAULTS.max_repeats) == (0.0, 0)
    assert resolve(max_length_ratio=2.5, max_repeats=3) == replace(DEFAULTS, max_length_ratio=2.5, max_repeats=3)
    guarded = replace(DEFAULTS, max_length_ratio=2.5, max_repeats=3)
    assert RequestedOptions(max_length_ratio=0.0, max_repeats=0).resolve(guarded) == DEFAULTS
