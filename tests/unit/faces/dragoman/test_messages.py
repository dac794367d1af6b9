"""Messages to domain types and back."""

from typing import Any

import pytest

from service.domain.errors import InvalidRequest
from service.domain.options import RequestedOptions
from service.domain.translation import FinishReason, Hypothesis, Priority, Translation, TranslationResult
from service.faces.dragoman.messages import FINISH_REASONS, request_from_pb, result_to_pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb

OPTIONS: dict[str, Any] = {
    "beam_size": 4,
    "length_penalty": 0.6,
    "num_hypotheses": 2,
    "max_output_tokens": 9,
    "return_scores": True,
    "temperature": 0.5,
    "top_k": 7,
    "top_p": 0.25,
    "seed": 2**64 - 1,
    "repetition_penalty": 1.5,
    "no_repeat_ngram_size": 3,
    "min_output_tokens": 2,
}


def test_a_request_keeps_everything() -> None:
    message = pb.TranslateRequest(
        texts=["a", "b"],
        source_language_code="en",
        target_language_code="de",
        model="tiny",
        model_version="3",
        options=pb.DecodingOptions(**OPTIONS),
        priority=pb.PRIORITY_HIGH,
    )
    request = request_from_pb(message, 12.5)
    assert request.texts == ("a", "b")
    assert (request.source_language_code, request.target_language_code) == ("en", "de")
    assert (request.model, request.model_version) == ("tiny", "3")
    assert request.options == RequestedOptions(**OPTIONS)
    assert (request.priority, request.deadline_seconds) == (Priority.HIGH, 12.5)


def test_what_was_not_set_is_none_and_zero_is_not() -> None:
    assert request_from_pb(pb.TranslateRequest(), 0.0).options == RequestedOptions()
    message = pb.TranslateRequest(options=pb.DecodingOptions(beam_size=0, length_penalty=0.0, return_scores=False))
    assert request_from_pb(message, 0.0).options == RequestedOptions(
        beam_size=0, length_penalty=0.0, return_scores=False
    )


def test_a_priority_that_is_not_set_is_normal_and_an_unknown_one_is_refused() -> None:
    assert request_from_pb(pb.TranslateRequest(), 0.0).priority is Priority.NORMAL
    message = pb.TranslateRequest.FromString(b"\x80\x01\x09")  # field 16 is 9
    with pytest.raises(InvalidRequest, match="priority is 9; allowed are PRIORITY_UNSPECIFIED, PRIORITY_LOW"):
        request_from_pb(message, 0.0)


@pytest.mark.parametrize("reason", FinishReason)
def test_every_finish_reason_has_a_value_of_the_same_name(reason: FinishReason) -> None:
    assert pb.FinishReason.Name(FINISH_REASONS[reason]) == f"FINISH_REASON_{reason.name}"


def test_a_score_is_set_only_if_there_is_one() -> None:
    hypotheses = (Hypothesis("x", -1.5, 3), Hypothesis("y", None, 2))
    result = TranslationResult("tiny", "2", (Translation("x", hypotheses, FinishReason.RATIO, 7),))
    message = result_to_pb(result)
    assert (message.model, message.model_version) == ("tiny", "2")
    (translation,) = message.translations
    assert (translation.text, translation.num_source_tokens) == ("x", 7)
    assert translation.finish_reason == pb.FINISH_REASON_RATIO
    assert [(h.text, h.num_tokens, h.HasField("score")) for h in translation.hypotheses] == [
        ("x", 3, True),
        ("y", 2, False),
    ]
    assert translation.hypotheses[0].score == -1.5
