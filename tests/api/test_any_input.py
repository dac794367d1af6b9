"""Every input is answered, or refused with the right status in one clear line that names the field."""

import re
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from hypothesis import HealthCheck, event, given, settings

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.any_request import REQUESTS
from tests.api.test_streams import joined
from tests.grpc_calls import detail_of, refused, request_of
from tests.patience import patient
from tests.servers import InProcessServer, rpc_error

REFUSED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.RESOURCE_EXHAUSTED}
ODD = {
    "nothing": "",
    "white space": " \t\r\n\u3000\u2028",
    "NUL": "keys\0file",
    "control characters": "Hello \x01\x02\x1b[31m\x7f\x9b file\x0b\x0c.",
    "unpaired marks": "\u0301\u0301 keys \u093f\u200d\ufe0f",
    "a long word": "x" * 10_000,
    "a long word of others": "ж" * 10_000,
    "unclosed tags": "<p>Save <b>the <i>file<a href='x",
    "a bare <": "a < b & c > d",
    "private use": "\ue000 Hello \ue001",
    "the last code point": "\U0010ffff",
}


@pytest.mark.parametrize("mime_type", ["text/plain", "text/html"])
@pytest.mark.parametrize("name", ODD)
def test_odd_texts_are_no_errors(stub: pb_grpc.TranslationServiceStub, name: str, mime_type: str) -> None:
    request = request_of([ODD[name], "Hello"], mime_type=mime_type)
    odd, normal = stub.Translate(request, timeout=patient(60)).translations
    assert normal == stub.Translate(request_of(["Hello"]), timeout=patient(30)).translations[0]
    if not ODD[name].strip():
        assert odd.text == ODD[name]
    covered = sum(segment.source_end - segment.source_start for segment in odd.segments)
    if mime_type == "text/plain":
        visible = sum(not c.isspace() for c in ODD[name]) if any(map(str.isalpha, ODD[name])) else 0
        assert covered >= visible


@pytest.mark.parametrize(
    ("temperature", "top_p", "top_k"), [(5e-324, 1.0, 64), (1e-300, 5e-324, 64), (10.0, 1e-300, 64), (1.0, 1.0, 1)]
)
def test_the_smallest_numbers_choose_the_best_token(
    stub: pb_grpc.TranslationServiceStub, temperature: float, top_p: float, top_k: int
) -> None:
    options = pb.DecodingOptions(temperature=temperature, top_p=top_p, top_k=top_k)
    sampled = stub.Translate(request_of(["Hello"], options=options), timeout=patient(30))
    assert sampled == stub.Translate(request_of(["Hello"]), timeout=patient(30))


def test_white_space_behind_what_nobody_sees_is_no_segment(stub: pb_grpc.TranslationServiceStub) -> None:
    request = request_of(["\x1b\nkeys"], split_sentences=pb.SPLIT_SENTENCES_OFF)
    [segment] = stub.Translate(request, timeout=patient(30)).translations[0].segments
    assert (segment.source_start, segment.source_end) == (2, 6)


def check(stub: pb_grpc.TranslationServiceStub, request: pb.TranslateRequest) -> bool:
    """Check that the request is translated completely or rejected, the same in a stream; return whether translated."""
    try:
        translations = list(stub.Translate(request, timeout=patient(60)).translations)
    except grpc.RpcError:
        for method in (stub.Translate, stub.TranslateStream):
            error = refused(method, request, timeout=patient(60))
            assert error.code() in REFUSED, (error.code(), error.details())
            assert "\n" not in error.details()
        return False
    streamed = joined(list(stub.TranslateStream(request, timeout=patient(60))), len(request.texts))
    assert len(translations) == len(request.texts)
    for text, translation in zip(request.texts, translations, strict=True):
        check_positions(text if request.mime_type.lower() != "text/html" else None, translation)
    if not request.options.temperature or request.options.HasField("seed"):
        assert streamed == translations
    return True


def check_positions(text: str | None, translation: pb.Translation) -> None:
    done = written = 0
    for segment in translation.segments:
        assert done <= segment.source_start <= segment.source_end
        assert written <= segment.target_start <= segment.target_end
        done, written = segment.source_end, segment.target_end
        assert segment.finish_reason
    if text is not None:
        assert done <= len(text)
        assert written <= len(translation.text)
        for span in translation.alignment:
            assert 0 <= span.source_start < span.source_end <= len(text)
            assert 0 <= span.target_start <= span.target_end <= len(translation.text)


@pytest.fixture
def checked(server: InProcessServer, stub: pb_grpc.TranslationServiceStub) -> Iterator[pb_grpc.TranslationServiceStub]:
    """Yield the stub; then check that the server answers a normal call as before and has nothing left of the others."""
    request = request_of(["Hello"])
    before = stub.Translate(request, timeout=patient(30))
    yield stub
    assert stub.Translate(request, timeout=patient(30)) == before
    assert not server.server.translator.num_pending
    assert not server.server.models[0].leases.num_held


FEW = settings(
    max_examples=40, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FEW
@given(REQUESTS)
def test_any_request_is_answered_or_refused(checked: pb_grpc.TranslationServiceStub, request: Any) -> None:
    event(f"answered: {check(checked, request)}")


GOOD: dict[str, Any] = {"texts": ["Hello"], "source_language_code": "en", "target_language_code": "de"}
TRANSLATE = "/dragoman.v1.TranslationService/Translate"
STREAM = f"{TRANSLATE}Stream"

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def options(**chosen: Any) -> dict[str, Any]:
    return {"options": pb.DecodingOptions(**chosen)}


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
    "unknown target": ({"target_language_code": "fr"}, "", "'fr'.*targets from 'en': de"),
    "unknown source": ({"source_language_code": "fr"}, "", "'fr'.*en to de"),
    "unknown model": ({"model": "huge"}, "", "'huge'.*served: tiny"),
    "unknown glossary": ({"glossary": "none"}, "", "'none' from en into de.*there are none"),
    "unknown version": ({"model": "tiny", "model_version": "9"}, "", "'9'.*served: 1"),
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
    "too few prefixes": ({"texts": ["a", "b"], "target_prefixes": ["x"]}, "target_prefixes", "1 entry for 2 texts"),
    "prefix in HTML": ({"target_prefixes": ["Wo"], "mime_type": "text/html"}, "target_prefixes", "'text/html'"),
    "prefix of unknown characters": (
        {"texts": ["a", "b"], "target_prefixes": ["Wo", "Wo \u4e2d"]},
        *("target_prefixes[1]", r"target_prefixes\[1\].*'Wo \u4e2d'.*'Wo '"),
    ),
    "prefix as long as the output": (
        {"target_prefixes": ["Wo ist das"], **options(max_output_tokens=2)},
        *("target_prefixes", "a target prefix has.*up to 1"),
    ),
    "too many segments": ({"texts": ["keys. " * 5000]}, "texts", "4096 segments.*allowed: 4096.*Send less"),
    "too much output": (options(max_output_tokens=97), "options.max_output_tokens", "97.*1 to 96"),
    "top_k alone": (options(top_k=5), "options.top_k", "temperature"),
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
