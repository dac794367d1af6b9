"""Conversion between the client's types and protobuf messages, and the methods of the service."""

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from dragoman_client.options import Options, Placeholder, Term
from dragoman_client.pb import translation_pb2 as pb
from dragoman_client.request import check_fields, listed
from dragoman_client.translation import (
    AlignedSpan,
    DetectedLanguage,
    FinishReason,
    Flag,
    Hypothesis,
    Model,
    Segment,
    StreamEvent,
    Translation,
)

Value = TypeVar("Value", bound=enum.Enum)

# Arguments for `unary_unary` and `unary_stream` of a channel: path, serializer and deserializer.
TRANSLATE = (
    "/dragoman.v1.TranslationService/Translate",
    pb.TranslateRequest.SerializeToString,
    pb.TranslateResponse.FromString,
)
TRANSLATE_STREAM = (
    "/dragoman.v1.TranslationService/TranslateStream",
    pb.TranslateRequest.SerializeToString,
    pb.TranslateStreamResponse.FromString,
)
DETECT_LANGUAGE = (
    "/dragoman.v1.TranslationService/DetectLanguage",
    pb.DetectLanguageRequest.SerializeToString,
    pb.DetectLanguageResponse.FromString,
)
LIST_MODELS = (
    "/dragoman.v1.TranslationService/ListModels",
    pb.ListModelsRequest.SerializeToString,
    pb.ListModelsResponse.FromString,
)


def request_to_pb(
    texts: Iterable[str], source_language_code: str, target_language_code: str, fields: Mapping[str, Any]
) -> pb.TranslateRequest:
    """Return the message for a call; `fields` are `RequestFields`, possibly unseen by a type checker.

    Raises:
        TypeError: a keyword is unknown, or a value has the wrong type.
        ValueError: a number does not fit into its field, or a string is not Unicode.
    """
    check_fields(fields)
    return pb.TranslateRequest(
        texts=listed("texts", texts, str),
        source_language_code=source_language_code,
        target_language_code=target_language_code,
        **{name: _TO_PB[name](value) if name in _TO_PB else value for name, value in fields.items()},
    )


def detection_request_to_pb(texts: Iterable[str]) -> pb.DetectLanguageRequest:
    """Return the message for a detection.

    Raises:
        TypeError: the texts are a string, or not all of them are strings.
    """
    return pb.DetectLanguageRequest(texts=listed("texts", texts, str))


def translations_from_pb(response: pb.TranslateResponse) -> list[Translation]:
    """Return one translation per text."""
    return [_translation_from_pb(translation) for translation in response.translations]


def event_from_pb(message: pb.TranslateStreamResponse) -> StreamEvent:
    """Return one event of a stream."""
    translation = _translation_from_pb(message.translation) if message.HasField("translation") else None
    return StreamEvent(message.text_index, message.delta, translation, message.model, message.model_version)


def detections_from_pb(response: pb.DetectLanguageResponse) -> list[tuple[DetectedLanguage, ...]]:
    """Return the languages of each text, most likely first."""
    return [
        tuple(DetectedLanguage(each.language_code, each.confidence) for each in detection.languages)
        for detection in response.detections
    ]


def models_from_pb(response: pb.ListModelsResponse) -> list[Model]:
    """Return the models in the server's order."""
    return [_model_from_pb(model) for model in response.models]


def _options_to_pb(options: Options | None) -> pb.DecodingOptions | None:
    if options is None:
        return None
    message = pb.DecodingOptions()
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if value is None:
            continue
        try:
            setattr(message, field.name, value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"options.{field.name} is {value!r}, which the protocol can't hold: {error}.") from None
    return message


def _term_to_pb(term: Term) -> pb.Term:
    return pb.Term(source=term.source, target=term.target, case_sensitive=term.case_sensitive)


def _placeholder_to_pb(placeholder: Placeholder) -> pb.Placeholder:
    return pb.Placeholder(pattern=placeholder.pattern, start=placeholder.start, end=placeholder.end)


_TO_PB: dict[str, Callable[[Any], Any]] = {
    "options": _options_to_pb,
    "priority": lambda priority: f"PRIORITY_{priority.name}",
    "mime_type": lambda mime_type: mime_type.value,
    "split_sentences": lambda split: f"SPLIT_SENTENCES_{split.name}",
    "placeholders": lambda placeholders: [_placeholder_to_pb(each) for each in placeholders],
    "terms": lambda terms: [_term_to_pb(term) for term in terms],
}


def _translation_from_pb(message: pb.Translation) -> Translation:
    return Translation(
        message.text,
        tuple([_hypothesis_from_pb(each) for each in message.hypotheses]),
        _finish_reason(message.finish_reason),
        message.num_source_tokens,
        tuple([_segment_from_pb(each) for each in message.segments]),
        tuple([_span_from_pb(each) for each in message.alignment]),
        message.detected_language_code,
        message.pivot_language_code,
    )


def _hypothesis_from_pb(message: pb.Hypothesis) -> Hypothesis:
    return Hypothesis(message.text, message.score if message.HasField("score") else None, message.num_tokens)


def _segment_from_pb(message: pb.Segment) -> Segment:
    return Segment(
        message.source_start,
        message.source_end,
        message.target_start,
        message.target_end,
        _finish_reason(message.finish_reason),
        message.num_source_tokens,
        message.num_output_tokens,
        tuple([_FLAGS.get(flag, Flag.UNSPECIFIED) for flag in message.flags]),
    )


def _span_from_pb(message: pb.AlignedSpan) -> AlignedSpan:
    return AlignedSpan(message.source_start, message.source_end, message.target_start, message.target_end)


def _model_from_pb(message: pb.Model) -> Model:
    return Model(
        name=message.name,
        version=message.version,
        language_pairs=tuple((pair.source_language_code, pair.target_language_code) for pair in message.language_pairs),
        max_source_tokens=message.max_source_tokens,
        max_output_tokens=message.max_output_tokens,
        default_options=Options(**{field.name: value for field, value in message.default_options.ListFields()}),
        precision=message.precision,
        any_to_any_language_codes=tuple(message.any_to_any_language_codes),
        kernels=message.kernels,
        pivoted_pairs=tuple(
            (pair.source_language_code, pair.target_language_code, pair.pivot_language_code)
            for pair in message.pivoted_pairs
        ),
        licence=message.licence,
    )


def _finish_reason(number: int) -> FinishReason:
    return _FINISH_REASONS.get(number, FinishReason.UNSPECIFIED)


# Numbers known only to newer servers become UNSPECIFIED here.
_FINISH_REASONS = {pb.FinishReason.Value(f"FINISH_REASON_{each.name}"): each for each in FinishReason}
_FLAGS = {pb.Flag.Value(f"FLAG_{each.name}"): each for each in Flag}
