"""Wrong input: the right status, one clear line, the field named, and nothing else affected."""

from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from service.pb.dragoman.v1 import translation_pb2 as pb
from service.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.servers import InProcessServer, rpc_error

GOOD: dict[str, Any] = {"texts": ["Hello"], "source_language_code": "en", "target_language_code": "de"}
TRANSLATE = "/dragoman.v1.TranslationService/Translate"

INVALID, MISSING = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND

CASES: dict[str, tuple[dict[str, Any], grpc.StatusCode, str, str, list[str]]] = {
    "empty list": ({"texts": []}, INVALID, "texts", "invalid", ["texts is empty", "1 to 1024"]),
    "too many": ({"texts": ["a"] * 1025}, INVALID, "texts", "too_many", ["1025", "1024"]),
    "too long": (
        {"texts": ["ok", "keys " * 100]},
        INVALID,
        "texts[1]",
        "too_long",
        ["texts[1] has", "tokens", "up to 64", "Split"],
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
        stub.Translate(pb.TranslateRequest(**(GOOD | changes)), timeout=30)
    error = rpc_error(raised)
    assert error.code() is code
    assert "\n" not in error.details()
    for fragment in fragments:
        assert fragment in error.details()
    assert violated_field(error) == field
    assert server.metric("dragoman_rejected_total", reason=reason) == before + 1
    assert stub.Translate(pb.TranslateRequest(**GOOD), timeout=30).translations[0].text


def violated_field(error: Any) -> Any:
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        bad_request = error_details_pb2.BadRequest()
        if detail.Unpack(bad_request):
            return bad_request.field_violations[0].field
    return ""


def test_bytes_that_are_no_message_are_the_callers_fault(server: InProcessServer) -> None:
    not_utf8 = b"\x0a\x02\xff\xfe"  # texts: two bytes that are no UTF-8
    for request in (not_utf8, b"\xff\xff\xff"):
        with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary(TRANSLATE, bytes, bytes)(request, timeout=30)
        assert rpc_error(raised).code() is INVALID
        assert "UTF-8" in rpc_error(raised).details()


def test_more_than_4_mib_is_refused(server: InProcessServer, stub: pb_grpc.TranslationServiceStub) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        stub.Translate(pb.TranslateRequest(**(GOOD | {"texts": ["x" * (5 << 20)]})), timeout=30)
    assert rpc_error(raised).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert rpc_status.from_call(rpc_error(raised)) is None  # no RetryInfo: trying again won't help


def test_a_huge_text_is_counted_and_refused(stub: pb_grpc.TranslationServiceStub) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        stub.Translate(pb.TranslateRequest(**(GOOD | {"texts": ["keys " * 200_000]})), timeout=30)
    assert rpc_error(raised).code() is INVALID
    assert "texts[0] has" in rpc_error(raised).details()


def test_an_unknown_method_is_unimplemented(server: InProcessServer) -> None:
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/dragoman.v1.TranslationService/Nope", bytes, bytes)(b"", timeout=30)
    assert rpc_error(raised).code() is grpc.StatusCode.UNIMPLEMENTED
