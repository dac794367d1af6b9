"""Every input is either answered or rejected, and the server keeps running."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, event, given, settings

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.any_request import REQUESTS
from tests.api.test_streams import joined
from tests.grpc_calls import refused, request_of
from tests.patience import patient
from tests.servers import InProcessServer

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
