"""Invalid input: the right status, one clear line that names the field, and no effect on other calls."""

import re
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import detail_of, refused
from tests.patience import patient
from tests.servers import InProcessServer, rpc_error

GOOD: dict[str, Any] = {"texts": ["Hello"], "source_language_code": "en", "target_language_code": "de"}
TRANSLATE = "/dragoman.v1.TranslationService/Translate"
STREAM = f"{TRANSLATE}Stream"

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def options(**chosen: Any) -> dict[str, Any]:
    return {"options": pb.DecodingOptions(**chosen)}


INFINITE = float("inf")
CASES: dict[str, tuple[dict[str, Any], str, str]] = {  # changes to a good request, field, words of the error in order
    "empty list": ({"texts": []}, "texts", "texts is empty.*1 to 1024"),
    "too many": ({"texts": ["a"] * 1025}, "texts", "1025.*1024"),
    "too long": (
        {"texts": ["ok", "keys " * 100], "strict": True},
        "texts[1]",
        r"texts\[1\] has.*tokens.*up to 64.*`strict`",
    ),
    "no target": ({"target_language_code": ""}, "target_language_code", "target_language_code"),
    "no code": ({"target_language_code": "d!"}, "target_language_code", "'d!'.*BCP 47"),
    "unknown target": ({"target_language_code": "fr"}, "", "'fr'.*it can be de"),
    "unknown source": ({"source_language_code": "fr"}, "", "'fr'.*en to de"),
    "unknown model": ({"model": "huge"}, "", "'huge'.*served are tiny"),
    "unknown glossary": ({"glossary": "none"}, "", "'none' from en into de.*there are none"),
    "unknown version": ({"model": "tiny", "model_version": "9"}, "", "'9'.*served are 1"),
    "version alone": ({"model_version": "1"}, "model_version", "name the model"),
    "unknown mime type": ({"mime_type": "application/pdf"}, "mime_type", "'application/pdf'.*text/plain, text/html"),
    "unknown priority": ({"priority": 99}, "priority", "99.*PRIORITY_LOW"),
    "unknown split": ({"split_sentences": 99}, "split_sentences", "99.*SPLIT_SENTENCES_OFF"),
    "empty term": ({"terms": [pb.Term(source="a"), pb.Term(source=" ")]}, "terms[1]", r"terms\[1\]"),
    "long term": ({"terms": [pb.Term(source="a" * 201)]}, "terms[0]", "201.*1 to 200"),
    "long target": (
        {"terms": [pb.Term(source="a", target="b" * 201)]},
        "terms[0]",
        "target of 201 characters.*1 to 200",
    ),
    "too many placeholders": ({"placeholders": [pb.Placeholder(pattern="a")] * 33}, "placeholders", "33.*32"),
    "no pattern": ({"placeholders": [pb.Placeholder(pattern="a(")]}, "placeholders[0]", r"'a\('.*missing \).*re2/wiki"),
    "empty label": ({"labels": {"": "x"}}, "labels", "1 to 63"),
    "long label": ({"labels": {"k": "x" * 64}}, "labels", "63 characters"),
    "too few prefixes": ({"texts": ["a", "b"], "target_prefixes": ["x"]}, "target_prefixes", "1 entries for 2 texts"),
    "prefix in HTML": ({"target_prefixes": ["Wo"], "mime_type": "text/html"}, "target_prefixes", "'text/html'"),
    "prefix of unknown characters": (
        {"texts": ["a", "b"], "target_prefixes": ["Wo", "Wo \u4e2d"]},
        *("target_prefixes[1]", r"target_prefixes\[1\].*'Wo \u4e2d'.*'Wo '"),
    ),
    "prefix as long as the output": (
        {"target_prefixes": ["Wo ist das"], **options(max_output_tokens=2)},
        *("target_prefixes", "a target prefix has.*up to 1"),
    ),
    "too many segments": ({"texts": ["keys. " * 5000]}, "texts", "4096 segments.*allowed are 4096.*Send less"),
    "beam 0": (options(beam_size=0), "options.beam_size", "0.*1 to 8"),
    "too much output": (options(max_output_tokens=97), "options.max_output_tokens", "97.*1 to 96"),
    "top_k alone": (options(top_k=5), "options.top_k", "temperature"),
    "samples from a beam": (options(temperature=1, beam_size=2), "options.beam_size", "sampling takes beam_size 1"),
    "penalty is infinite": (options(length_penalty=INFINITE), "options.length_penalty", "inf"),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_input_is_refused_clearly(
    server: InProcessServer, stub: pb_grpc.TranslationServiceStub, case: str
) -> None:
    changes, field, words = CASES[case]
    kinds = [kind for kind in ("too_long", "too_many") if case.startswith(kind.replace("_", " "))]
    (reason,) = kinds or ["invalid" if field else "not_found"]
    before = server.metric("dragoman_rejected_total", reason=reason)
    error = refused(stub.Translate, pb.TranslateRequest(**(GOOD | changes)))
    assert error.code() is (INVALID if field else grpc.StatusCode.NOT_FOUND)
    assert "\n" not in error.details()
    assert re.search(words, error.details())
    assert field_of(error) == field
    assert server.metric("dragoman_rejected_total", reason=reason) == before + 1
    assert stub.Translate(pb.TranslateRequest(**GOOD), timeout=patient(30)).translations[0].text


def field_of(error: Any) -> str:
    found = detail_of(error, error_details_pb2.BadRequest)
    return str(found.field_violations[0].field) if found else ""


def test_bytes_that_are_no_message_are_the_callers_fault(
    server: InProcessServer, caplog: pytest.LogCaptureFixture
) -> None:
    before = server.metric("dragoman_rejected_total", reason="invalid")
    not_utf8 = b"\x0a\x02\xff\xfe"  # texts: two bytes that are not UTF-8
    for request in (not_utf8, b"\xff\xff\xff"):
        with grpc.insecure_channel(server.address) as channel:
            for method in (channel.unary_unary(TRANSLATE, bytes, bytes), channel.unary_stream(STREAM, bytes, bytes)):
                error = refused(method, request)
                assert error.code() is INVALID
                assert "UTF-8" in error.details()
    assert server.metric("dragoman_rejected_total", reason="invalid") == before + 4
    assert not caplog.records


def test_an_unknown_method_is_unimplemented(server: InProcessServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        error = refused(channel.unary_unary("/dragoman.v1.TranslationService/Nope", bytes, bytes), b"")
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


def test_reflection_refuses_bytes_that_are_no_message(server: InProcessServer, caplog: Any) -> None:
    with grpc.insecure_channel(server.address) as channel:
        ask = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", bytes, bytes)
        with pytest.raises(grpc.RpcError) as raised:
            list(ask(iter([b"\xff"]), timeout=patient(30)))
    assert rpc_error(raised).code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "not a valid message" in rpc_error(raised).details()
    assert not caplog.records
