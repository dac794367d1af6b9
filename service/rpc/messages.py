"""Protobuf messages of dragoman.v1 to domain types and back."""

from collections.abc import Iterable
from typing import Any

from service.errors import InvalidRequest
from service.models.loaded_model import LoadedModel
from service.pb.dragoman.v1 import translation_pb2 as pb
from service.translation import (
    DetectedLanguage,
    FinishReason,
    Priority,
    RequestedOptions,
    Translation,
    TranslationRequest,
)
from service.translator import TranslationResult

FINISH_REASONS: dict[FinishReason, pb.FinishReason] = {
    FinishReason.STOP: pb.FINISH_REASON_STOP,
    FinishReason.LENGTH: pb.FINISH_REASON_LENGTH,
    FinishReason.RATIO: pb.FINISH_REASON_RATIO,
    FinishReason.REPETITION: pb.FINISH_REASON_REPETITION,
    FinishReason.CANCELLED: pb.FINISH_REASON_CANCELLED,
    FinishReason.DEADLINE: pb.FINISH_REASON_DEADLINE,
}

PRIORITIES: dict[pb.Priority, Priority] = {
    pb.PRIORITY_UNSPECIFIED: Priority.NORMAL,
    pb.PRIORITY_LOW: Priority.LOW,
    pb.PRIORITY_NORMAL: Priority.NORMAL,
    pb.PRIORITY_HIGH: Priority.HIGH,
}


def request_from_pb(message: pb.TranslateRequest, request_id: str, deadline_seconds: float) -> TranslationRequest:
    """What the caller asks for; `deadline_seconds` is on `time.monotonic()`'s clock.

    Raises:
        InvalidRequest: a priority that there is not.
    """
    return TranslationRequest(
        request_id=request_id,
        texts=tuple(message.texts),
        source_language_code=message.source_language_code,
        target_language_code=message.target_language_code,
        model=message.model,
        model_version=message.model_version,
        options=_options_from_pb(message.options),
        priority=_priority_from_pb(message.priority),
        deadline_seconds=deadline_seconds,
    )


def result_to_pb(result: TranslationResult) -> pb.TranslateResponse:
    """The answer to a call."""
    return pb.TranslateResponse(
        translations=[_translation_to_pb(translation) for translation in result.translations],
        model=result.model,
        model_version=result.model_version,
    )


def detection_to_pb(languages: Iterable[DetectedLanguage]) -> pb.Detection:
    """What a text may be written in."""
    return pb.Detection(
        languages=[
            pb.DetectedLanguage(language_code=language.language_code, confidence=language.confidence)
            for language in languages
        ]
    )


def model_to_pb(model: LoadedModel) -> pb.Model:
    """What a caller may know about a model."""
    limits, defaults = model.manifest.limits, model.default_options
    return pb.Model(
        name=model.name,
        version=model.version,
        language_pairs=[
            pb.LanguagePair(source_language_code=source, target_language_code=target)
            for source, target in model.pairs.listed
        ],
        max_source_tokens=limits.max_source_tokens,
        max_output_tokens=limits.max_output_tokens,
        default_options=pb.DecodingOptions(
            beam_size=defaults.beam_size,
            length_penalty=defaults.length_penalty,
            num_hypotheses=defaults.num_hypotheses,
            max_output_tokens=defaults.max_output_tokens,
            return_scores=defaults.return_scores,
            temperature=defaults.temperature,
            top_k=defaults.top_k,
            top_p=defaults.top_p,
        ),
        precision=model.manifest.precision,
        any_to_any_language_codes=model.pairs.any_to_any,
    )


def _options_from_pb(message: pb.DecodingOptions) -> RequestedOptions:
    return RequestedOptions(
        beam_size=_given(message, "beam_size"),
        length_penalty=_given(message, "length_penalty"),
        num_hypotheses=_given(message, "num_hypotheses"),
        max_output_tokens=_given(message, "max_output_tokens"),
        return_scores=_given(message, "return_scores"),
        temperature=_given(message, "temperature"),
        top_k=_given(message, "top_k"),
        top_p=_given(message, "top_p"),
        seed=_given(message, "seed"),
    )


def _priority_from_pb(value: pb.Priority) -> Priority:
    if value not in PRIORITIES:
        known = ", ".join(pb.Priority.Name(number) for number in PRIORITIES)
        raise InvalidRequest(f"priority is {value}; allowed are {known}.", "priority")
    return PRIORITIES[value]


def _given(message: pb.DecodingOptions, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None


def _translation_to_pb(translation: Translation) -> pb.Translation:
    return pb.Translation(
        text=translation.text,
        hypotheses=[
            pb.Hypothesis(text=hypothesis.text, score=hypothesis.score, num_tokens=hypothesis.num_tokens)
            for hypothesis in translation.hypotheses
        ],
        finish_reason=FINISH_REASONS[translation.finish_reason],
        num_source_tokens=translation.num_source_tokens,
        detected_language_code=translation.detected_language_code,
    )
