"""The table of decoding options: what a caller may ask for, its effect, and what must agree with the table."""

import math
import re
import textwrap
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from service.cli.main import dragoman
from service.domain.errors import InvalidRequest
from service.domain.options import DEFAULTS as SERVED
from service.domain.options import OPTIONS, DecodingOptions, Option, RequestedOptions
from service.domain.translation import REQUEST_OPTIONS
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from tests.servers import REPOSITORY

DEFAULTS = DecodingOptions(beam_size=4, length_penalty=1.0, num_hypotheses=2, max_output_tokens=100)


def resolve(**asked: Any) -> DecodingOptions:
    return RequestedOptions(**asked).resolve(DEFAULTS)


@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        ({}, {}),
        ({"temperature": 0.0}, {}),
        ({"num_hypotheses": 6}, {"beam_size": 6, "num_hypotheses": 6}),
        ({"beam_size": 1}, {"beam_size": 1, "num_hypotheses": 1}),
        ({"temperature": 0.5, "seed": 9}, {"beam_size": 1, "num_hypotheses": 1, "temperature": 0.5, "seed": 9}),
        ({"temperature": 0.5, "num_hypotheses": 8}, {"beam_size": 1, "num_hypotheses": 8, "temperature": 0.5}),
        ({"max_length_ratio": 2.5, "max_repeats": 3}, {"max_length_ratio": 2.5, "max_repeats": 3}),
    ],
)
def test_what_a_request_gets_of_what_it_asks_for(asked: dict[str, Any], changed: dict[str, Any]) -> None:
    assert resolve(**asked) == replace(DEFAULTS, **changed)
    assert resolve(**asked).is_sampled == ("seed" in asked or bool(asked.get("temperature")))


def test_guards_are_on_as_served_unless_a_request_turns_them_off() -> None:
    assert (SERVED["max_length_ratio"], SERVED["max_repeats"]) == (3.0, 10)
    assert SERVED.keys() <= OPTIONS.keys()
    guarded = replace(DEFAULTS, max_length_ratio=2.5, max_repeats=3)
    assert RequestedOptions(max_length_ratio=0.0, max_repeats=0).resolve(guarded) == DEFAULTS


def test_only_options_of_the_table_can_be_asked_for_and_none_is_not_set() -> None:
    with pytest.raises(TypeError, match="beam_sise"):
        RequestedOptions(beam_sise=4)
    assert RequestedOptions(beam_size=None, return_scores=False) == RequestedOptions(return_scores=False)
    assert hash(RequestedOptions(top_k=1)) is not None


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


BOUNDED = [option for option in OPTIONS.values() if option.high is not None]


@pytest.mark.parametrize("option", BOUNDED, ids=lambda option: option.name)
def test_the_bounds_are_the_last_values_allowed(option: Option) -> None:
    assert option.low is not None
    assert option.high is not None
    beyond = 1 if option.kind is int else 1e-9
    beside = {"temperature": 1.0} if option.needs_sampling else {}
    for value in (option.low, option.high):
        if not (option.excludes_low and value == option.low):
            assert getattr(resolve(**beside | {option.name: option.kind(value)}), option.name) == value
    for value in (option.low - beyond, option.high + beyond, *([option.low] if option.excludes_low else [])):
        with pytest.raises(InvalidRequest) as raised:
            resolve(**beside | {option.name: option.kind(value)})
        assert raised.value.field == f"options.{option.name}"
        if option.name != "num_hypotheses":  # its message names the beam that it was checked against
            assert option.allowed() in str(raised.value)


def test_bounds_and_defaults_in_words() -> None:
    words = {name: (option.allowed(), option.default_words) for name, option in OPTIONS.items()}
    assert words["beam_size"] == ("1 to 8", "the model's")
    assert words["top_p"] == ("above 0 to 1", "1")
    assert words["return_scores"] == ("true or false", "false")
    assert words["max_output_tokens"] == ("1 to the model's limit", "the model's limit")
    assert words["max_repeats"] == ("0 to 100", "10")
    assert OPTIONS["max_output_tokens"].allowed(96) == "1 to 96"


WIRE_TYPES = {"TYPE_INT32": int, "TYPE_UINT64": int, "TYPE_DOUBLE": float, "TYPE_BOOL": bool}


def test_the_wire_carries_these_options_and_no_others() -> None:
    wire = {field.name: field for field in pb.DecodingOptions.DESCRIPTOR.fields}
    assert wire.keys() == OPTIONS.keys()
    names = {number: name for name, number in vars(type(wire["seed"])).items() if name.startswith("TYPE_")}
    for name, option in OPTIONS.items():
        assert WIRE_TYPES[names[wire[name].type]] is option.kind
        assert wire[name].has_presence  # otherwise 0 could not be told from "not set"


def test_the_contract_tells_the_bounds_of_each() -> None:
    text = (REPOSITORY / "proto/dragoman/v1/translation.proto").read_text(encoding="utf-8")
    message = text.partition("message DecodingOptions {")[2].partition("\n}")[0]
    comments = re.findall(r"((?:^  //.*\n)+)  optional \w+ (\w+) =", message, re.MULTILINE)
    told = {name: " ".join(comment.replace("//", " ").split()) for comment, name in comments}
    assert told.keys() == OPTIONS.keys()
    for option in BOUNDED:
        if option.name != "seed":  # its bounds are those of its type
            assert option.allowed() in told[option.name], option.name


def test_the_commands_help_tells_the_bounds_and_the_default_of_each() -> None:
    output = " ".join(CliRunner().invoke(dragoman, ["translate", "--help"]).output.split())
    for name, option in OPTIONS.items():
        if name != "return_scores":
            assert f"{option.flag} " in output
            assert f"Allowed: {option.allowed()}. Default: {option.default_words}." in output
    assert "Default: 0, never" not in output


def test_the_document_lists_them() -> None:
    lines = [
        f"- `{each.name}` ({each.allowed()}; default: {each.default_words}): {each.help}" for each in OPTIONS.values()
    ]
    wrapped = "\n".join(textwrap.fill(line, 120, subsequent_indent="  ") for line in lines)
    document = (REPOSITORY / "docs/requests.md").read_text(encoding="utf-8")
    assert f"\n\n{wrapped}\n\n" in document, f"docs/requests.md should hold:\n\n{wrapped}"


def test_the_wire_carries_the_options_of_a_request() -> None:
    wire = {field.name for field in pb.TranslateRequest.DESCRIPTOR.fields}
    assert REQUEST_OPTIONS.keys() <= wire
    assert {"model", "glossary", "strict"} < REQUEST_OPTIONS.keys()


def test_the_commands_help_tells_the_options_of_a_request() -> None:
    output = CliRunner().invoke(dragoman, ["translate", "--help"]).output
    for name, option in REQUEST_OPTIONS.items():
        assert (f"--{name.replace('_', '-')} " in output) is option.in_commands
        assert ("".join(option.help.split()) in "".join(output.split())) is option.in_commands
