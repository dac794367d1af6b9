"""KServe's messages to domain types and back; invalid messages never cause more than a rejection."""

import dataclasses
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Language, LanguagePair
from service.domain.errors import InvalidRequest, Path, TooLong
from service.domain.translation import (
    FinishReason,
    Hypothesis,
    Translation,
    TranslationRequest,
    TranslationResult,
)
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.kserve.messages import InferCall, call_from_pb, results_to_pb, spelled
from service.faces.kserve.methods import config_to_pb
from service.faces.kserve.tensors import elements_of, raw_of, texts_of
from service.models.language_pairs import LanguagePairs
from tests.unit.models.bare_manifest import MANIFEST


def model(name: str, manifest: Manifest) -> Any:
    return SimpleNamespace(name=name, manifest=manifest, pairs=LanguagePairs(manifest))


ONE_PAIR = model("one", MANIFEST)
MANY_PAIRS = model(
    "many", dataclasses.replace(MANIFEST, languages=(LanguagePair("en", "de"), LanguagePair("en", "fr")))
)
CODES = [first + second for first in "abcdefghijkm" for second in "abcdefghijkmnoprstuvw"][:200]


def call(message: pb.ModelInferRequest, model: Any = ONE_PAIR, deadline_seconds: float = 60.0) -> InferCall:
    return call_from_pb(message, model, now_seconds=10.0, deadline_seconds=deadline_seconds)


def message(*texts: str, raw: bool = True, languages: Any = (), **fields: Any) -> pb.ModelInferRequest:
    made = pb.ModelInferRequest(model_name="one", **fields)
    for name, values in {"text": texts, **dict(languages)}.items():
        tensor = made.inputs.add(name=name, datatype="BYTES", shape=[len(values)])
        elements = [value.encode() for value in values]
        if raw:
            made.raw_input_contents.append(raw_of(elements))
        else:
            tensor.contents.bytes_contents.extend(elements)
    return made


def parameter(value: Any) -> pb.InferParameter:
    kinds = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}
    return pb.InferParameter(**{kinds[type(value)]: value})


def with_parameters(**values: Any) -> pb.ModelInferRequest:
    return message("a", parameters={name: parameter(value) for name, value in values.items()})


@given(st.lists(st.binary(max_size=40), max_size=30))
@settings(derandomize=True, deadline=None)
def test_elements_come_back_from_raw_contents(elements: list[bytes]) -> None:
    assert elements_of("text", raw_of(elements), len(elements)) == elements


@given(st.lists(st.text(max_size=20), min_size=1, max_size=20), st.booleans())
@settings(derandomize=True, deadline=None)
def test_texts_arrive_as_they_are(texts: list[str], raw: bool) -> None:
    (part,) = call(message(*texts, raw=raw)).parts
    assert part.request.texts == tuple(texts)
    assert part.indices == tuple(range(len(texts)))


@given(st.lists(st.binary(max_size=10), min_size=1, max_size=5), st.data())
@settings(derandomize=True, deadline=None)
def test_damaged_raw_contents_are_refused_by_name(elements: list[bytes], data: Any) -> None:
    raw = raw_of(elements)
    cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
    longer = raw + data.draw(st.binary(min_size=1, max_size=8))
    for damaged in (cut, longer):
        tensor = pb.ModelInferRequest.InferInputTensor(name="text", datatype="BYTES", shape=[len(elements)])
        with pytest.raises(InvalidRequest, match="tensor 'text'"):
            texts_of(tensor, damaged)


def test_lengths_beyond_the_contents_cost_nothing() -> None:
    raw = struct.pack("<I", 2**32 - 1) + b"x"
    with pytest.raises(InvalidRequest, match="ends within element 0"):
        elements_of("text", raw, 1)
    with pytest.raises(InvalidRequest, match="of raw contents after its 1 element"):
        elements_of("text", b"\0" * 4_000_000, 1)


def test_texts_are_grouped_by_pair_and_answered_in_their_order() -> None:
    languages = {"source_language": ["en"] * 4, "target_language": ["de", "fr", "de", ""]}
    with pytest.raises(InvalidRequest, match="'target_language'"):
        call(message("a", "b", "c", "d", languages=languages), MANY_PAIRS)
    languages["target_language"][3] = "it"
    strict = {"strict": parameter(True), "glossary": parameter("terms")}
    asked = call(message("a", "b", "c", "d", languages=languages, parameters=strict), MANY_PAIRS)
    assert all(part.request.is_strict and part.request.glossary == "terms" for part in asked.parts)
    assert [(part.request.target_language_code, part.request.texts, part.indices) for part in asked.parts] == [
        ("de", ("a", "c"), (0, 2)),
        ("fr", ("b",), (1,)),
        ("it", ("d",), (3,)),
    ]
    response = results_to_pb(asked, [result(part.request) for part in asked.parts], "mine")
    assert elements_of("translation", response.raw_output_contents[0], 4) == [b"A", b"B", b"C", b"D"]
    assert elements_of("finish_reason", response.raw_output_contents[1], 4) == [b"stop"] * 4
    assert [list(output.shape) for output in response.outputs] == [[4], [4]]
    assert (response.id, response.model_version) == ("mine", "7")


def result(request: TranslationRequest) -> TranslationResult:
    translations = [
        Translation(text.upper(), (Hypothesis(text.upper(), -0.5, 1),), FinishReason.STOP, 1) for text in request.texts
    ]
    return TranslationResult("one", "7", tuple(translations))


@pytest.mark.parametrize("raw", [True, False])
def test_scores_are_four_bytes_each_and_zero_for_what_was_not_translated(raw: bool) -> None:
    asked = call(message("a", "", raw=raw, outputs=[pb.ModelInferRequest.InferRequestedOutputTensor(name="score")]))
    request = asked.parts[0].request
    assert request.options.chosen["return_scores"] is True
    untouched = Translation("", (Hypothesis("", None, 0),), FinishReason.STOP, 0)
    answer = result(request)._replace(translations=(result(request).translations[0], untouched))
    response = results_to_pb(asked, [answer], "")
    (output,) = response.outputs
    assert output.datatype == "FP32"
    scores = struct.unpack("<2f", response.raw_output_contents[0]) if raw else tuple(output.contents.fp32_contents)
    assert scores == (-0.5, 0.0)


def test_one_pair_needs_no_languages_and_half_of_it_neither() -> None:
    for languages in ({}, {"target_language": ["de"]}, {"source_language": ["en"]}, {"source_language": [""]}):
        request = call(message("a", languages=languages)).parts[0].request
        assert (request.source_language_code, request.target_language_code) == ("en", "de")
    request = call(with_parameters(target_language="fr"), MANY_PAIRS).parts[0].request
    assert (request.source_language_code, request.target_language_code) == ("", "fr")  # that is: detect it


def test_a_timeout_is_in_microseconds_and_never_beyond_the_deadline() -> None:
    for timeout, deadline in ((0, 60.0), (1_500_000, 11.5), (10**12, 60.0)):
        request = call(with_parameters(timeout=timeout)).parts[0].request
        assert request.deadline_seconds == deadline


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"timeout": -1}, r"'timeout' is -1"),
        ({"priority": 4}, r"'priority' is 4; allowed: 1 \(high\)"),
        ({"seed": -1}, "'seed' is -1"),
        ({"top_k": 65}, "'top_k' is 65; allowed: 1 to 64"),
        ({"top_k": 1.5}, "'top_k' is 1.5; expected a whole number"),
        ({"top_k": True}, "'top_k' is true; expected a whole number"),
        ({"preserve_formatting": 1}, "expected true or false"),
        ({"mime_type": 1}, "allowed: text/plain, text/html"),
        ({"num_hypotheses": 2}, "'num_hypotheses' is unknown; known: beam_size, .*glossary,"),
    ],
)
def test_wrong_parameters_are_refused_by_name(values: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says) as raised:
        call(with_parameters(**values))
    assert raised.value.field == f"parameters[{next(iter(values))}]"


def test_an_error_of_a_part_names_the_text_as_the_caller_counts() -> None:
    long = TooLong("{path} has {number} tokens", Path("texts", 5), number=99)
    long.spelling = spelled
    assert (str(long), long.field) == ("text[5] has 99 tokens.", "text[5]")
    error = InvalidRequest("{path} is {value}", Path("options", "top_k"), value=0, allowed="1")
    error.spelling = spelled
    assert (str(error), error.field) == ("parameters[top_k] is 0; allowed: 1.", "parameters[top_k]")


def test_a_config_tells_pairs_without_writing_out_forty_thousand() -> None:
    manifest = dataclasses.replace(MANIFEST, any_to_any=tuple(Language(code) for code in CODES))
    config = config_to_pb(model("big", manifest)).config
    assert config.parameters["language_pairs"].string_value == "en:de"
    assert len(config.parameters["any_to_any_languages"].string_value.split()) == 200
    assert len(config.SerializeToString()) < 2000
