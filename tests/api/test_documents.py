"""Real-life documents: text between sentences is kept, overlong sentences are cut, and every ending is reported."""

from typing import Any

import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import request_of
from tests.patience import patient

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
    return list(stub.Translate(request_of(texts, **changes), timeout=patient(60)).translations)


def parts(text: str, translation: pb.Translation) -> list[str]:
    """Return the text's segments."""
    return [text[segment.source_start : segment.source_end] for segment in translation.segments]


def between(text: str, spans: list[tuple[int, int]]) -> list[str]:
    bounds = [0, *(bound for span in spans for bound in span), len(text)]
    return [text[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)]


BEFORE = ["Where is the train station?", "Save the file.", "Find my keys!", "Close the window.", "Hello"]
SPLITS: dict[str, tuple[Any, list[str]]] = {
    "on": (pb.SPLIT_SENTENCES_UNSPECIFIED, ["Save the", "file before you close the window."]),
    "no newlines": (pb.SPLIT_SENTENCES_NO_NEWLINES, ["Save the\nfile before you close the window."]),
}


@pytest.mark.parametrize("split", SPLITS)
def test_what_stands_between_segments_comes_back(stub: Stub, split: str) -> None:
    mode, last = SPLITS[split]
    expected = [*BEFORE, *last]
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


def test_a_segment_that_was_not_read_ended_by_itself(stub: Stub) -> None:
    (translation,) = ask(stub, "12 https://example.org/a {x}")
    assert translation.text == "12 https://example.org/a {x}"
    assert translation.finish_reason == pb.FINISH_REASON_STOP
    assert translation.num_source_tokens == 0
