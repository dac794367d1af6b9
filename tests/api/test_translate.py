"""Translate and ListModels as a caller sees them, and documents: all between sentences is kept."""

import math
from typing import Any

import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import request_of
from tests.patience import patient
from tests.tiny_bundle import MAX_OUTPUT_TOKENS, MAX_SOURCE_TOKENS

TEXTS = ["Where is the train station?", "Hello", "Save the file.", "keys", "window?"]


def ask(stub: pb_grpc.TranslationServiceStub, texts: list[str], options: Any = None, **fields: Any) -> Any:
    fields = {"source_language_code": "en", "target_language_code": "de"} | fields
    return stub.Translate(pb.TranslateRequest(texts=texts, options=options, **fields), timeout=patient(30))


def test_every_text_gets_its_own_translation_in_order(stub: pb_grpc.TranslationServiceStub) -> None:
    alone = [ask(stub, [text]).translations[0] for text in TEXTS]
    together = ask(stub, TEXTS).translations
    assert list(together) == alone
    assert len({translation.text for translation in together}) == len(TEXTS)


def test_a_translation_says_how_it_came_about(stub: pb_grpc.TranslationServiceStub) -> None:
    response = ask(stub, ["Hello"])
    (translation,) = response.translations
    assert response.model == "tiny"
    assert translation.finish_reason == pb.FINISH_REASON_RATIO  # this model never ends a sentence
    assert translation.num_source_tokens > 1
    (hypothesis,) = translation.hypotheses
    assert hypothesis.text == translation.text
    assert 0 < hypothesis.num_tokens <= MAX_OUTPUT_TOKENS
    assert not hypothesis.HasField("score")


def test_what_is_empty_comes_back_unchanged_and_in_its_place(stub: pb_grpc.TranslationServiceStub) -> None:
    empty = ["", " ", "\t\n", "\u3000"]
    texts = [empty[0], "Hello", empty[1], empty[2], "keys", empty[3]]
    translations = ask(stub, texts).translations
    assert [translations[index].text for index in (0, 2, 3, 5)] == empty
    assert [translations[index].num_source_tokens for index in (0, 2, 3, 5)] == [0] * 4
    assert [translations[index].finish_reason for index in (0, 2, 3, 5)] == [pb.FINISH_REASON_STOP] * 4
    assert translations[1] == ask(stub, ["Hello"]).translations[0]
    assert translations[4] == ask(stub, ["keys"]).translations[0]


def test_beams_give_ranked_hypotheses_with_scores(stub: pb_grpc.TranslationServiceStub) -> None:
    options = pb.DecodingOptions(beam_size=4, num_hypotheses=3, return_scores=True, max_output_tokens=8)
    (translation,) = ask(stub, ["Hello"], options).translations
    scores = [hypothesis.score for hypothesis in translation.hypotheses]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert all(math.isfinite(score) and score < 0 for score in scores)
    assert len({hypothesis.text for hypothesis in translation.hypotheses}) == 3
    assert translation.text == translation.hypotheses[0].text


def test_1024_texts_are_allowed(stub: pb_grpc.TranslationServiceStub) -> None:
    translations = ask(stub, ["Hello"] * 1024, pb.DecodingOptions(max_output_tokens=1)).translations
    assert len(translations) == 1024
    assert len({translation.text for translation in translations}) == 1


@pytest.mark.plain
def test_list_models_says_what_there_is(stub: pb_grpc.TranslationServiceStub) -> None:
    (model,) = stub.ListModels(pb.ListModelsRequest(), timeout=patient(30)).models
    names = {field.name for field in pb.DecodingOptions.DESCRIPTOR.fields}
    assert (model.name, model.version, model.precision) == ("tiny", "1", "float32")
    assert (model.kernels, model.licence) == ("plain", "unknown")
    assert [(p.source_language_code, p.target_language_code) for p in model.language_pairs] == [("en", "de")]
    assert (model.max_source_tokens, model.max_output_tokens) == (MAX_SOURCE_TOKENS, MAX_OUTPUT_TOKENS)
    assert {field.name for field, _ in model.default_options.ListFields()} == names - {"seed"}
    assert model.default_options.beam_size == 1
    assert (model.default_options.max_repeats, model.default_options.max_length_ratio) == (10, 3.0)


def test_the_same_seed_draws_the_same_samples_in_any_company(stub: pb_grpc.TranslationServiceStub) -> None:
    options = pb.DecodingOptions(temperature=1.5, num_hypotheses=4, seed=3, max_output_tokens=20)

    def samples(texts: list[str], seed: int = 3) -> list[str]:
        options.seed = seed
        return [hypothesis.text for hypothesis in ask(stub, texts, options).translations[0].hypotheses]

    alone = samples(["keys"])
    assert len(set(alone)) == 4
    assert samples(["keys", "Hello", "Save the file."]) == alone
    assert samples(["keys"], seed=4) != alone
    options.ClearField("seed")
    by_chance = [ask(stub, ["keys"], options).translations[0].text for _ in range(4)]
    assert len(set(by_chance)) > 1


def test_a_sample_of_the_best_token_only_is_greedy_search(stub: pb_grpc.TranslationServiceStub) -> None:
    (greedy,) = ask(stub, ["Hello"], pb.DecodingOptions(max_output_tokens=20, return_scores=True)).translations
    sampled_options = pb.DecodingOptions(max_output_tokens=20, return_scores=True, temperature=1.0, top_k=1)
    (sampled,) = ask(stub, ["Hello"], sampled_options).translations
    assert sampled.text == greedy.text
    assert sampled.hypotheses[0].score == pytest.approx(greedy.hypotheses[0].score, rel=1e-5)


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


def translated(stub: Stub, *texts: str, **changes: Any) -> list[pb.Translation]:
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
    (translation,) = translated(stub, DOCUMENT, split_sentences=mode)
    assert parts(DOCUMENT, translation) == expected
    sources = [(segment.source_start, segment.source_end) for segment in translation.segments]
    targets = [(segment.target_start, segment.target_end) for segment in translation.segments]
    assert between(translation.text, targets) == between(DOCUMENT, sources)
    for (start, end), source in zip(targets, expected, strict=True):
        (alone,) = translated(stub, source, split_sentences=mode)
        assert translation.text[start:end] == alone.text
    assert translation.num_source_tokens == sum(segment.num_source_tokens for segment in translation.segments)
    assert translation.hypotheses[0].num_tokens == sum(segment.num_output_tokens for segment in translation.segments)


@pytest.mark.plain
def test_every_segment_says_how_it_ended(stub: Stub) -> None:
    """The tiny model never ends a sentence by itself and soon repeats itself."""

    def reasons(**options: Any) -> list[str]:
        (translation,) = translated(stub, "Hello. 12. Save the file.", options=pb.DecodingOptions(**options))
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
    (translation,) = translated(stub, "12 https://example.org/a {x}")
    assert translation.text == "12 https://example.org/a {x}"
    assert translation.finish_reason == pb.FINISH_REASON_STOP
    assert translation.num_source_tokens == 0
