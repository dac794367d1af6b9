"""TranslateStream: Translate's answers in parts."""

from collections.abc import Sequence
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import detail_of, refused, request_of, stub_of
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts, eventually

METHOD = "dragoman.v1.TranslationService/TranslateStream"
CODES: dict[str, Any] = {"source_language_code": "en", "target_language_code": "de"}
TEXTS = [
    "Where is the train station? Save the file.\n\n- keys\n- Find the window!\r\n",
    "",
    " \n",
    "Hello",
    "12 34",
    "Save {{name}} before https://example.org/a closes. Find my keys {0}?",
    "Hello, can you help me find my keys? " * 8,
    "word" * 200,
    "a\0b \u0301 😀 file.",
]
HTML = ["<p>Save the <b>file</b>.</p><ul><li>keys</li><li>Hello {0}</li></ul>", "Hello", "<br>", "<p>a < b"]

REQUESTS: dict[str, dict[str, Any]] = {
    "greedy": {"texts": TEXTS},
    "one text": {"texts": TEXTS[:1]},
    "beam 4": {"texts": TEXTS, "options": pb.DecodingOptions(beam_size=4, num_hypotheses=2, return_scores=True)},
    "samples": {"texts": TEXTS, "options": pb.DecodingOptions(temperature=1.5, seed=7, num_hypotheses=3)},
    "unguarded": {"texts": TEXTS, "options": pb.DecodingOptions(max_repeats=0, max_length_ratio=0)},
    "guarded": {"texts": TEXTS, "options": pb.DecodingOptions(max_repeats=1, beam_size=3)},
    "rescored": {"texts": TEXTS, "options": pb.DecodingOptions(repetition_penalty=1.4, min_output_tokens=4)},
    "rescored beams": {"texts": TEXTS, "options": pb.DecodingOptions(no_repeat_ngram_size=2, beam_size=3)},
    "whole": {"texts": TEXTS, "split_sentences": pb.SPLIT_SENTENCES_OFF},
    "paragraphs": {"texts": TEXTS, "split_sentences": pb.SPLIT_SENTENCES_NO_NEWLINES},
    "formatting": {"texts": TEXTS, "preserve_formatting": True},
    "terms": {"texts": TEXTS, "terms": [pb.Term(source="file", target="Akte"), pb.Term(source="keys")]},
    "alignments": {"texts": TEXTS, "return_alignments": True},
    "prefixes": {"texts": TEXTS, "target_prefixes": ["Wo ist"] * len(TEXTS)},
    "html": {"texts": HTML, "mime_type": "text/html", "return_alignments": True},
    "detection": {"texts": TEXTS, "source_language_code": ""},
    "html with detection": {"texts": HTML, "mime_type": "text/html", "source_language_code": ""},
    "only what is no language": {"texts": ["", "12 34"], "source_language_code": ""},
}


def joined(parts: Sequence[pb.TranslateStreamResponse], num_texts: int) -> list[pb.Translation]:
    """Return the stream's translations; each text's deltas must add up to it, the last one with the translation."""
    texts = [""] * num_texts
    ends_in_space: list[tuple[int, int]] = []
    translations: dict[int, pb.Translation] = {}
    for part in parts:
        assert part.text_index not in translations, "something after the end"
        texts[part.text_index] += part.delta
        assert part.model
        if part.HasField("translation"):
            translations[part.text_index] = part.translation
        else:
            assert part.delta
            if part.delta[-1].isspace():
                ends_in_space.append((part.text_index, len(texts[part.text_index])))
    assert sorted(translations) == list(range(num_texts))
    assert texts == [translations[index].text for index in range(num_texts)]
    for index, end in ends_in_space:  # a word goes out with the space before it, but that at the end of what it is in
        assert end in {segment.target_end for segment in translations[index].segments}
    return [translations[index] for index in range(num_texts)]


@pytest.mark.parametrize("case", REQUESTS)
def test_deltas_make_what_translate_says(stub: pb_grpc.TranslationServiceStub, case: str) -> None:
    request = pb.TranslateRequest(**(CODES | REQUESTS[case]))
    parts = list(stub.TranslateStream(request, timeout=patient(60)))
    assert joined(parts, len(request.texts)) == list(stub.Translate(request, timeout=patient(60)).translations)


def test_so_they_do_from_the_cache(serve: Serve) -> None:
    server = serve(cache_mib=16)
    with stub_of(server.address) as stub:
        for case in ("greedy", "html", "samples", "prefixes", "greedy"):
            request = pb.TranslateRequest(**(CODES | REQUESTS[case]))
            first = joined(list(stub.TranslateStream(request, timeout=patient(60))), len(request.texts))
            before = server.metric("dragoman_sentences_total", model="tiny", outcome="ok")
            parts = list(stub.TranslateStream(request, timeout=patient(60)))
            assert server.metric("dragoman_sentences_total", model="tiny", outcome="ok") == before
            assert joined(parts, len(request.texts)) == first
            assert first == list(stub.Translate(request, timeout=patient(60)).translations)
        # the prefix is part of the cache key
        prefixed = request_of(["Hello"], target_prefixes=["Wo"])
        plain = request_of(["Hello"])
        answers = [stub.Translate(each, timeout=patient(30)).translations[0].text for each in (plain, prefixed, plain)]
        assert answers[0] == answers[2] != answers[1]
        assert answers[1].startswith("Wo")


def test_words_come_while_the_engine_is_at_work(serve: Serve) -> None:
    """With one slot, the text's second sentence cannot begin before the first has ended."""
    server = serve(max_slots=1)
    engine = server.server.models[0].engine
    options = pb.DecodingOptions(max_output_tokens=96, max_length_ratio=0, max_repeats=0)
    request = request_of([". ".join(distinct_texts(400)) + "."], options=options)
    with stub_of(server.address) as stub:
        call = stub.TranslateStream(request, timeout=patient(60))
        first = next(call)
        snapshot = engine.snapshot()
        assert snapshot.num_waiting > 0
        assert first.delta
        assert not first.HasField("translation")
        call.cancel()
        eventually(server.is_idle, timeout_seconds=2)


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"texts": []}, grpc.StatusCode.INVALID_ARGUMENT, "texts"),
        ({"target_language_code": "fr"}, grpc.StatusCode.NOT_FOUND, ""),
        (
            {"texts": ["12", "Hello"], "target_prefixes": ["", "\u4e2d"], "source_language_code": ""},
            *(grpc.StatusCode.INVALID_ARGUMENT, "target_prefixes[1]"),
        ),
    ],
)
def test_errors_are_those_of_translate(
    server: InProcessServer, stub: pb_grpc.TranslationServiceStub, changes: Any, code: Any, field: str
) -> None:
    request = pb.TranslateRequest(**({"texts": ["Hello"]} | CODES | changes))
    before = server.metric("dragoman_requests_total", method=METHOD, code=code.name)
    error, unary = refused(stub.TranslateStream, request), refused(stub.Translate, request)
    assert error.code() is unary.code() is code
    assert error.details() == unary.details()
    violations = detail_of(error, error_details_pb2.BadRequest)
    assert [each.field for each in violations.field_violations] == [field] if field else violations is None
    assert server.metric("dragoman_requests_total", method=METHOD, code=code.name) == before + 1
