"""Answers as the client's types, from this version of the server and from newer ones."""

from dragoman_client import (
    AlignedSpan,
    DetectedLanguage,
    FinishReason,
    Flag,
    Hypothesis,
    Model,
    Options,
    Segment,
    StreamEvent,
    Translation,
    messages,
)
from dragoman_client.pb import translation_pb2 as pb

TRANSLATION = pb.Translation(
    text="Hallo",
    hypotheses=[pb.Hypothesis(text="Hallo", score=-0.5, num_tokens=2), pb.Hypothesis(text="He")],
    finish_reason=pb.FINISH_REASON_RATIO,
    num_source_tokens=3,
    segments=[
        pb.Segment(
            source_start=1,
            source_end=2,
            target_start=3,
            target_end=4,
            finish_reason=pb.FINISH_REASON_LENGTH,
            num_source_tokens=5,
            num_output_tokens=6,
            flags=[pb.FLAG_TERM, pb.FLAG_EMPTY],
        )
    ],
    alignment=[pb.AlignedSpan(source_start=1, source_end=2, target_start=3, target_end=4)],
    detected_language_code="en",
)
EXPECTED = Translation(
    text="Hallo",
    hypotheses=(Hypothesis("Hallo", -0.5, 2), Hypothesis("He", None, 0)),
    finish_reason=FinishReason.RATIO,
    num_source_tokens=3,
    segments=(Segment(1, 2, 3, 4, FinishReason.LENGTH, 5, 6, (Flag.TERM, Flag.EMPTY)),),
    alignment=(AlignedSpan(1, 2, 3, 4),),
    detected_language_code="en",
)


def test_a_translation_has_all_that_its_message_has() -> None:
    response = pb.TranslateResponse(translations=[TRANSLATION, pb.Translation()])
    first, second = messages.translations_from_pb(response)
    assert first == EXPECTED
    assert second.hypotheses == ()


def test_an_event_of_a_stream_has_a_translation_at_the_end_only() -> None:
    part = pb.TranslateStreamResponse(text_index=2, delta="Hal", model="m", model_version="1")
    assert messages.event_from_pb(part) == StreamEvent(2, "Hal", None, "m", "1")
    part.translation.CopyFrom(TRANSLATION)
    assert messages.event_from_pb(part) == StreamEvent(2, "Hal", EXPECTED, "m", "1")


def test_what_only_a_newer_server_knows_is_unspecified() -> None:
    newer = pb.Translation.FromString(pb.Translation(segments=[pb.Segment()]).SerializeToString() + b"\x18\x63")
    newer.segments[0].flags.append(99)  # type: ignore[arg-type]
    (translation,) = messages.translations_from_pb(pb.TranslateResponse(translations=[newer]))
    assert translation.finish_reason is FinishReason.UNSPECIFIED
    assert translation.segments[0].flags == (Flag.UNSPECIFIED,)


def test_detected_languages() -> None:
    languages = [pb.DetectedLanguage(language_code="en", confidence=0.75), pb.DetectedLanguage(language_code="de")]
    response = pb.DetectLanguageResponse(detections=[pb.Detection(languages=languages)])
    assert messages.detections_from_pb(response) == [(DetectedLanguage("en", 0.75), DetectedLanguage("de", 0.0))]


def test_a_model_has_its_defaults_and_all_its_directions() -> None:
    message = pb.Model(
        name="m",
        version="2",
        language_pairs=[pb.LanguagePair(source_language_code="en", target_language_code="de")],
        max_source_tokens=7,
        max_output_tokens=8,
        default_options=pb.DecodingOptions(beam_size=4, return_scores=False),
        precision="int8",
        any_to_any_language_codes=["fr", "it"],
        kernels="fused avx2",
        licence="mit",
    )
    (model,) = messages.models_from_pb(pb.ListModelsResponse(models=[message]))
    options = Options(beam_size=4, return_scores=False)
    assert model == Model("m", "2", (("en", "de"),), 7, 8, options, "int8", ("fr", "it"), "fused avx2", (), "mit")
    assert list(model.pairs()) == [("en", "de"), ("fr", "it"), ("it", "fr")]
