"""Invalid input: the right status, one clear line that names the field, and no effect on other calls."""

from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.patience import patient
from tests.servers import InProcessServer, rpc_error

GOOD: dict[str, Any] = {"texts": ["Hello"], "source_language_code": "en", "target_language_code": "de"}
TRANSLATE = "/dragoman.v1.TranslationService/Translate"

INVALID, MISSING = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND

CASES: dict[str, tuple[dict[str, Any], grpc.StatusCode, str, str, list[str]]] = {
    "empty list": ({"texts": []}, INVALID, "texts", "invalid", ["texts is empty", "1 to 1024"]),
    "too many": ({"texts": ["a"] * 1025}, INVALID, "texts", "too_many", ["1025", "1024"]),
    "too long": (
        {"texts": ["ok", "keys " * 100], "strict": True},
        INVALID,
        "texts[1]",
        "too_long",
        ["texts[1] has", "tokens", "up to 64", "`strict`"],
    ),
    "no target": ({"target_language_code": ""}, INVALID, "target_language_code", "invalid", ["target_language_code"]),
    "no code": ({"target_language_code": "d!"}, INVALID, "target_language_code", "invalid", ["'d!'", "BCP 47"]),
    "unknown target": ({"target_language_code": "fr"}, MISSING, "", "not_found", ["'fr'", "it can be de"]),
    "unknown source": ({"source_language_code": "fr"}, MISSING, "", "not_found", ["'fr'", "en to de"]),
    "unknown model": ({"model": "huge"}, MISSING, "", "not_found", ["'huge'", "served are tiny"]),
    "beam 0": ({"options": pb.DecodingOptions(beam_size=0)}, INVALID, "options.beam_size", "invalid", ["0", "1 to 8"]),
    "beam 9": ({"options": pb.DecodingOptions(beam_size=9)}, INVALID, "options.beam_size", "invalid", ["9", "1 to 8"]),
    "negative beam": ({"options": pb.DecodingOptions(beam_size=-1)}, INVALID, "options.beam_size", "invalid", ["-1"]),
    "more hypotheses than beams": (
        {"options": pb.DecodingOptions(beam_size=2, num_hypotheses=3)},
        INVALID,
        "options.num_hypotheses",
        "invalid",
        ["3", "1 to 2"],
    ),
    "no output": (
        {"options": pb.DecodingOptions(max_output_tokens=0)},
        INVALID,
        "options.max_output_tokens",
        "invalid",
        ["1 to 96"],
    ),
    "too much output": (
        {"options": pb.DecodingOptions(max_output_tokens=97)},
        INVALID,
        "options.max_output_tokens",
        "invalid",
        ["97", "1 to 96"],
    ),
    "unknown glossary": ({"glossary": "none"}, MISSING, "", "not_found", ["'none' from en into de", "there are none"]),
    "unknown version": ({"model": "tiny", "model_version": "9"}, MISSING, "", "not_found", ["'9'", "served are 1"]),
    "version alone": ({"model_version": "1"}, INVALID, "model_version", "invalid", ["name the model"]),
    "unknown mime type": (
        {"mime_type": "application/pdf"},
        INVALID,
        "mime_type",
        "invalid",
        ["'application/pdf'", "text/plain, text/html"],
    ),
    "unknown priority": ({"priority": 99}, INVALID, "priority", "invalid", ["99", "PRIORITY_LOW"]),
    "unknown split": ({"split_sentences": 99}, INVALID, "split_sentences", "invalid", ["99", "SPLIT_SENTENCES_OFF"]),
    "too many terms": ({"terms": [pb.Term(source="a")] * 1025}, INVALID, "terms", "too_many", ["1025", "1024"]),
    "empty term": ({"terms": [pb.Term(source="a"), pb.Term(source=" ")]}, INVALID, "terms[1]", "invalid", ["terms[1]"]),
    "long term": ({"terms": [pb.Term(source="a" * 201)]}, INVALID, "terms[0]", "invalid", ["201", "1 to 200"]),
    "too many placeholders": (
        {"placeholders": [pb.Placeholder(pattern="a")] * 33},
        INVALID,
        "placeholders",
        "too_many",
        ["33", "32"],
    ),
    "no pattern": (
        {"placeholders": [pb.Placeholder(pattern="a("), pb.Placeholder(start="[")]},
        INVALID,
        "placeholders[0]",
        "invalid",
        ["'a('", "missing )", "re2/wiki/Syntax"],
    ),
    "long target": (
        {"terms": [pb.Term(source="a", target="b" * 201)]},
        INVALID,
        "terms[0]",
        "invalid",
        ["a target of 201 characters", "1 to 200"],
    ),
    "too many labels": ({"labels": {str(n): "" for n in range(65)}}, INVALID, "labels", "too_many", ["65", "64"]),
    "empty label": ({"labels": {"": "x"}}, INVALID, "labels", "invalid", ["1 to 63"]),
    "long label": ({"labels": {"k": "x" * 64}}, INVALID, "labels", "invalid", ["63 characters"]),
    "too few prefixes": (
        {"texts": ["a", "b"], "target_prefixes": ["x"]},
        INVALID,
        "target_prefixes",
        "invalid",
        ["1 entries for 2 texts"],
    ),
    "prefix in HTML": (
        {"target_prefixes": ["Wo"], "mime_type": "text/html"},
        INVALID,
        "target_prefixes",
        "invalid",
        ["'text/html'"],
    ),
    "prefix that can't be written": (
        {"texts": ["a", "b"], "target_prefixes": ["Wo", "Wo \u4e2d"]},
        INVALID,
        "target_prefixes[1]",
        "invalid",
        ["target_prefixes[1]", "'Wo \u4e2d'", "'Wo '"],
    ),
    "prefix as long as the output": (
        {"target_prefixes": ["Wo ist das"], "options": pb.DecodingOptions(max_output_tokens=2)},
        INVALID,
        "target_prefixes",
        "invalid",
        ["a target prefix has", "up to 1"],
    ),
    "more segments than can wait": (
        {"texts": ["keys. " * 5000]},
        INVALID,
        "texts",
        "too_many",
        ["more than 4096 segments", "allowed are 4096", "Send less"],
    ),
    "beam 1000": ({"options": pb.DecodingOptions(beam_size=1000)}, INVALID, "options.beam_size", "invalid", ["1000"]),
    "negative temperature": (
        {"options": pb.DecodingOptions(temperature=-1)},
        INVALID,
        "options.temperature",
        "invalid",
        ["-1.0", "0 to 10"],
    ),
    "temperature is no number": (
        {"options": pb.DecodingOptions(temperature=float("nan"))},
        INVALID,
        "options.temperature",
        "invalid",
        ["nan"],
    ),
    "no top_p": (
        {"options": pb.DecodingOptions(temperature=1, top_p=0)},
        INVALID,
        "options.top_p",
        "invalid",
        ["above 0 to 1"],
    ),
    "top_p is no number": (
        {"options": pb.DecodingOptions(temperature=1, top_p=float("nan"))},
        INVALID,
        "options.top_p",
        "invalid",
        ["nan"],
    ),
    "top_k 65": (
        {"options": pb.DecodingOptions(temperature=1, top_k=65)},
        INVALID,
        "options.top_k",
        "invalid",
        ["65", "1 to 64"],
    ),
    "top_k alone": ({"options": pb.DecodingOptions(top_k=5)}, INVALID, "options.top_k", "invalid", ["temperature"]),
    "samples from a beam": (
        {"options": pb.DecodingOptions(temperature=1, beam_size=2)},
        INVALID,
        "options.beam_size",
        "invalid",
        ["sampling takes beam_size 1"],
    ),
    "repeats": ({"options": pb.DecodingOptions(max_repeats=101)}, INVALID, "options.max_repeats", "invalid", ["101"]),
    "ratio is no number": (
        {"options": pb.DecodingOptions(max_length_ratio=float("nan"))},
        INVALID,
        "options.max_length_ratio",
        "invalid",
        ["nan", "0 to 100"],
    ),
    "penalty is no number": (
        {"options": pb.DecodingOptions(length_penalty=float("nan"))},
        INVALID,
        "options.length_penalty",
        "invalid",
        ["nan"],
    ),
    "penalty is infinite": (
        {"options": pb.DecodingOptions(length_penalty=float("inf"))},
        INVALID,
        "options.length_penalty",
        "invalid",
        ["inf"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_input_is_refused_clearly(
    server: InProcessServer, stub: pb_grpc.TranslationServiceStub, case: str
) -> None:
    changes, code, field, reason, fragments = CASES[case]
    before = server.metric("dragoman_rejected_total", reason=reason)
    with pytest.raises(grpc.RpcError) as raised:
        stub.Translate(pb.TranslateRequest(**(GOOD | changes)), timeout=patient(30))
    error = rpc_error(raised)
    assert error.code() is code
    assert "\n" not in error.details()
    for fragment in fragments:
        assert fragment in error.details()
    assert violated_field(error) == field
    assert server.metric("dragoman_rejected_total", reason=reason) == before + 1
    assert stub.Translate(pb.TranslateRequest(**GOOD), timeout=patient(30)).translations[0].text


def violated_field(error: Any) -> Any:
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        bad_request = error_details_pb2.BadRequest()
        if detail.Unpack(bad_request):
            return bad_request.field_violations[0].field
    return ""


def test_bytes_that_are_no_message_are_the_callers_fault(server: InProcessServer) -> None:
    not_utf8 = b"\x0a\x02\xff\xfe"  # texts: two bytes that are not UTF-8
    for request in (not_utf8, b"\xff\xff\xff"):
        with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary(TRANSLATE, bytes, bytes)(request, timeout=patient(30))
        assert rpc_error(raised).code() is INVALID
        assert "UTF-8" in rpc_error(raised).details()


def test_more_than_4_mib_is_refused(server: InProcessServer, stub: pb_grpc.TranslationServiceStub) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        stub.Translate(pb.TranslateRequest(**(GOOD | {"texts": ["x" * (5 << 20)]})), timeout=patient(30))
    assert rpc_error(raised).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert rpc_status.from_call(rpc_error(raised)) is None  # no RetryInfo: retrying will not help


def test_a_huge_text_is_counted_and_refused(stub: pb_grpc.TranslationServiceStub) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        stub.Translate(pb.TranslateRequest(**(GOOD | {"texts": ["keys " * 200_000]})), timeout=patient(30))
    assert rpc_error(raised).code() is INVALID
    assert "1000000 characters in total; allowed are 131072" in rpc_error(raised).details()


def test_an_unknown_method_is_unimplemented(server: InProcessServer) -> None:
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/dragoman.v1.TranslationService/Nope", bytes, bytes)(b"", timeout=patient(30))
    assert rpc_error(raised).code() is grpc.StatusCode.UNIMPLEMENTED


def test_reflection_refuses_bytes_that_are_no_message(server: InProcessServer, caplog: Any) -> None:
    with grpc.insecure_channel(server.address) as channel:
        ask = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", bytes, bytes)
        with pytest.raises(grpc.RpcError) as raised:
            list(ask(iter([b"\xff"]), timeout=patient(30)))
    assert rpc_error(raised).code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "not a valid message" in rpc_error(raised).details()
    assert not caplog.records
