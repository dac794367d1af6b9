"""Real-life documents: text between sentences is kept, overlong sentences are cut, and every ending is reported."""

from typing import Any

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.patience import patient
from tests.servers import rpc_error
from tests.tiny_bundle import MAX_SOURCE_TOKENS

DOCUMENT = (
    "Where is the train station? Save the file.\r\n"
    "\r\n"
    "  - Find my keys!\r\n"
    "  - Close the window.\r\n"
    "\t* Hello\n"
    "\n\n\n"
    "12 / 34\n"
    "1. Save the\nfile before you close the window. \u2028\n"
)
Stub = pb_grpc.TranslationServiceStub


def ask(stub: Stub, *texts: str, **changes: Any) -> list[pb.Translation]:
    fields = {"source_language_code": "en", "target_language_code": "de"} | changes
    return list(stub.Translate(pb.TranslateRequest(texts=texts, **fields), timeout=patient(60)).translations)


def parts(text: str, translation: pb.Translation) -> list[str]:
    """Return the text's segments."""
    return [text[segment.source_start : segment.source_end] for segment in translation.segments]


def between(text: str, spans: list[tuple[int, int]]) -> list[str]:
    bounds = [0, *(bound for span in spans for bound in span), len(text)]
    return [text[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)]


SPLITS: dict[str, tuple[Any, list[str]]] = {
    "on": (
        pb.SPLIT_SENTENCES_UNSPECIFIED,
        [
            "Where is the train station?",
            "Save the file.",
            "Find my keys!",
            "Close the window.",
            "Hello",
            "Save the",
            "file before you close the window.",
        ],
    ),
    "no newlines": (
        pb.SPLIT_SENTENCES_NO_NEWLINES,
        [
            "Where is the train station?",
            "Save the file.",
            "Find my keys!",
            "Close the window.",
            "Hello",
            "Save the\nfile before you close the window.",
        ],
    ),
}


@pytest.mark.parametrize("split", SPLITS)
def test_what_stands_between_segments_comes_back(stub: Stub, split: str) -> None:
    mode, expected = SPLITS[split]
    (translation,) = ask(stub, DOCUMENT, split_sentences=mode)
    assert parts(DOCUMENT, translation) == expected
    sources = [(segment.source_start, segment.source_end) for segment in translation.segments]
    targets = [(segment.target_start, segment.target_end) for segment in translation.segments]
    assert between(translation.text, targets) == between(DOCUMENT, sources)
    for (start, end), source in zip(targets, expected, strict=True):
        (alone,) = ask(stub, source, split_sentences=mode)
        assert translation.text[start:end] == alone.text
    assert translation.num_source_tokens == sum(segment.num_source_tokens for segment in translation.segments)
    assert translation.hypotheses[0].num_tokens == sum(segment.num_output_tokens for segment in translation.segments)


def test_off_makes_one_segment(stub: Stub) -> None:
    text = " Save the file. Find my\nkeys!\n"
    (translation,) = ask(stub, text, split_sentences=pb.SPLIT_SENTENCES_OFF)
    assert parts(text, translation) == [text.strip()]
    assert (translation.text[0], translation.text[-1], translation.text.count("\n")) == (" ", "\n", 2)


def test_too_long_a_sentence_is_cut_and_strict_refuses_it(stub: Stub) -> None:
    text = "Hello. " + "save the file, close the window and find my keys " * 20 + "before. Hello."
    (translation,) = ask(stub, text)
    segments = translation.segments
    assert len(segments) > 5
    assert all(0 < segment.num_source_tokens <= MAX_SOURCE_TOKENS for segment in segments)
    assert "".join("".join(parts(text, translation)).split()) == "".join(text.split())
    with pytest.raises(grpc.RpcError) as raised:
        ask(stub, "Hello", text, strict=True)
    assert rpc_error(raised).code() is grpc.StatusCode.INVALID_ARGUMENT
    assert rpc_error(raised).details().startswith("texts[1] has a segment of ")
    assert ask(stub, "Hello. Hello.", strict=True)


def test_30000_characters_in_one_call(stub: Stub) -> None:
    text = "".join(f"Save the file {number}.{' ' if number % 10 else chr(10)}" for number in range(1600))[:30_000]
    (translation,) = ask(stub, text)
    sources = [(segment.source_start, segment.source_end) for segment in translation.segments]
    targets = [(segment.target_start, segment.target_end) for segment in translation.segments]
    assert len(text) == 30_000
    assert len(sources) > 1500
    assert between(translation.text, targets) == between(text, sources)


@pytest.mark.plain
def test_every_segment_says_how_it_ended(stub: Stub) -> None:
    """The tiny model never ends a sentence by itself and soon repeats itself."""

    def reasons(**options: Any) -> list[str]:
        (translation,) = ask(stub, "Hello. 12. Save the file.", options=pb.DecodingOptions(**options))
        names = [
            pb.FinishReason.Name(each.finish_reason).removeprefix("FINISH_REASON_") for each in translation.segments
        ]
        assert pb.FinishReason.Name(translation.finish_reason) == f"FINISH_REASON_{names[0]}"
        return names

    assert reasons(max_length_ratio=0, max_repeats=0) == ["LENGTH", "LENGTH"]
    assert reasons(max_output_tokens=3) == ["LENGTH", "LENGTH"]
    assert reasons(max_length_ratio=1, max_repeats=0) == ["RATIO", "RATIO"]
    assert reasons() == ["RATIO", "RATIO"]
    assert reasons(max_repeats=1, max_length_ratio=0) == ["REPETITION", "REPETITION"]


def test_the_ratio_and_the_repeats_are_what_was_asked_for(stub: Stub) -> None:
    for ratio in (0.5, 2.0):
        options = pb.DecodingOptions(max_length_ratio=ratio, max_repeats=0)
        (translation,) = ask(stub, "Save the file.", options=options)
        (segment,) = translation.segments
        assert segment.num_output_tokens == int(ratio * segment.num_source_tokens) + 16


def test_a_segment_that_was_not_read_ended_by_itself(stub: Stub) -> None:
    (translation,) = ask(stub, "12 https://example.org/a {x}")
    assert translation.text == "12 https://example.org/a {x}"
    assert translation.finish_reason == pb.FINISH_REASON_STOP
    assert translation.num_source_tokens == 0


def test_hypotheses_of_several_segments_belong_together_by_rank(stub: Stub) -> None:
    options = pb.DecodingOptions(beam_size=4, num_hypotheses=3, return_scores=True)
    first, second = "Save the file.", "Find my keys!"
    both, alone, other = ask(stub, f"{first}\n{second}", first, second, options=options)
    assert len(both.hypotheses) == 3
    for hypothesis, one, two in zip(both.hypotheses, alone.hypotheses, other.hypotheses, strict=True):
        assert hypothesis.text == f"{one.text}\n{two.text}"
        assert hypothesis.num_tokens == one.num_tokens + two.num_tokens
        weighted = one.score * one.num_tokens + two.score * two.num_tokens
        assert hypothesis.score == pytest.approx(weighted / hypothesis.num_tokens)


def test_languages_are_detected_where_the_source_is_left_out(stub: Stub) -> None:
    english, number, empty = ask(stub, "Where is the train station? Save the file.", "12", "", source_language_code="")
    assert [each.detected_language_code for each in (english, number, empty)] == ["en", "und", "und"]
    assert (number.text, empty.text) == ("12", "")
    (given,) = ask(stub, "Where is the train station? Save the file.")
    assert given.detected_language_code == ""
    assert given.text == english.text


def test_a_prefix_begins_the_first_segment(stub: Stub) -> None:
    first, second = ask(stub, "Save the file. Hello.", "Hello.", target_prefixes=["Wo ist der", ""])
    assert first.text.startswith("Wo ist der")
    assert second == ask(stub, "Hello.")[0]
    assert first.segments[1].num_output_tokens == second.segments[0].num_output_tokens
