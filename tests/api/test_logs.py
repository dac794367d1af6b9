"""What is logged about calls, and that their texts never are."""

import asyncio
import json
import logging
import warnings
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from service.domain.call import current_call
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.grpc_calls import refused, stub_of
from tests.log_lines import lines
from tests.patience import patient
from tests.servers import InProcessServer, distinct_texts, eventually

SECRET = "Zwetschgenkuchen"
TEXT = f"keys {SECRET} window"
TRANSLATE = "dragoman.v1.TranslationService/Translate"


def ours(*texts: str, **changes: Any) -> Any:
    fields = {"texts": texts, "source_language_code": "en", "target_language_code": "de"} | changes
    return pb.TranslateRequest(**fields)


def fails(call: Callable[..., Any], *arguments: Any, **how: Any) -> str:
    error = refused(call, *arguments, **how)
    return str(error.code().name)


def everything(address: str) -> list[str]:
    """Make calls of every kind that contain the secret, including ones that fail because of it; return their codes."""
    with grpc.insecure_channel(address, options=[("grpc.enable_retries", 0)]) as channel:
        dragoman = pb_grpc.TranslationServiceStub(channel)
        google = google_grpc.TranslationServiceStub(channel)
        kserve = kserve_grpc.GRPCInferenceServiceStub(channel)
        infer = kserve_pb.ModelInferRequest(model_name="tiny")
        infer.inputs.add(name="text", datatype="BYTES", shape=[1]).contents.bytes_contents.append(TEXT.encode())
        of_google = {"parent": "projects/p", "contents": [TEXT], "source_language_code": "en"}
        dragoman.Translate(ours(TEXT, f"<b>{TEXT}</b>", mime_type="text/html"), timeout=patient(30))
        dragoman.Translate(ours(TEXT, terms=[pb.Term(source=SECRET, target=SECRET)]), timeout=patient(30))
        dragoman.DetectLanguage(pb.DetectLanguageRequest(texts=[TEXT]), timeout=patient(30))
        list(dragoman.TranslateStream(ours(TEXT), timeout=patient(30)))
        asked = google_pb.TranslateTextRequest(target_language_code="de", **of_google)  # type: ignore[arg-type]
        google.TranslateText(asked, timeout=patient(30))
        kserve.ModelInfer(infer, timeout=patient(30))
        list(kserve.ModelStreamInfer(iter([infer]), timeout=patient(30)))
        return [
            fails(dragoman.Translate, ours(" ".join([SECRET] * 4000), strict=True)),
            fails(dragoman.Translate, ours(TEXT, target_language_code=SECRET)),
            fails(dragoman.Translate, ours(TEXT, model=SECRET)),
            fails(dragoman.Translate, ours(TEXT, glossary=SECRET)),
            fails(dragoman.Translate, ours(TEXT, target_prefixes=[SECRET] * 3)),
            fails(dragoman.TranslateStream, ours(TEXT, mime_type=SECRET)),
            fails(google.TranslateText, google_pb.TranslateTextRequest(target_language_code=SECRET, **of_google)),  # type: ignore[arg-type]
            fails(kserve.ModelInfer, kserve_pb.ModelInferRequest(model_name=SECRET)),
        ]


@pytest.mark.parametrize("log_text", [False, True])
def test_no_line_holds_a_caller_s_text_unless_it_may(
    serve: Callable[..., InProcessServer], monkeypatch: pytest.MonkeyPatch, log_text: bool
) -> None:
    with lines(shows_texts=log_text) as log:
        server = serve(access_log_ratio=1.0, log_text=log_text)
        codes = everything(server.address)
        eventually(lambda: len(log.calls()) == 7 + len(codes))

        async def quotes(request: Any) -> None:
            warnings.warn(current_call().request_id, stacklevel=1)
            raise ValueError(f"can't make anything of {request.texts[0]!r}")

        monkeypatch.setattr(server.server.translator, "translate", quotes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with stub_of(server.address) as stub:
                assert fails(stub.Translate, ours(TEXT)) == "INTERNAL"
        eventually(lambda: log.calls()[-1]["code"] == "INTERNAL")
    assert set(codes) == {"INVALID_ARGUMENT", "NOT_FOUND"}
    found = [line for line in log.lines if SECRET in line]
    if log_text:
        assert len(found) == 7 + len(codes) - 1 + 2  # every call with texts, the traceback, and the call that raised it
        assert any("ValueError" in line for line in found)
    else:
        assert found == []
        assert any("ValueError" in line for line in log.lines)


def test_every_line_of_a_call_has_its_id_and_the_access_log_its_numbers(
    serve: Callable[..., InProcessServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    with lines() as log:
        server = serve(access_log_ratio=1.0)
        texts = distinct_texts(200)  # enough to be planned on a separate thread
        from service.translation import call as translation_call

        plan = translation_call.TranslationCall.plan

        def noisy(self: Any) -> None:
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            logging.getLogger("service.x").info("planning")
            plan(self)

        monkeypatch.setattr(translation_call.TranslationCall, "plan", noisy)
        with stub_of(server.address) as stub:
            answer, call = stub.Translate.with_call(
                ours(*texts), timeout=patient(30), metadata=[("x-request-id", "r-7")]
            )
        eventually(lambda: bool(log.calls()))
    (line,) = log.calls()
    (planning,) = [each for each in map(json.loads, log.lines) if each["message"] == "planning"]
    assert planning["request_id"] == line["request_id"] == "r-7"
    assert (line["method"], line["code"], line["model"], line["version"]) == (TRANSLATE, "OK", "tiny", "1")
    assert line["texts"] == len(texts)
    assert line["source_tokens"] == sum(each.num_source_tokens for each in answer.translations)
    assert line["output_tokens"] == sum(each.hypotheses[0].num_tokens for each in answer.translations)
    told = dict(part.split(";dur=") for part in dict(call.trailing_metadata())["server-timing"].split(", "))
    ours_ = {"queue": line["queue_ms"], "encode": line["encode_ms"], "decode": line["decode_ms"]}
    assert {name: float(value) for name, value in told.items()} == ours_ | {"total": line["milliseconds"]}
    assert server.metric("dragoman_request_duration_seconds_sum", method=TRANSLATE, code="OK") == pytest.approx(
        line["milliseconds"] / 1000, abs=0.0001
    )


def test_without_an_access_log_only_failures_of_the_server_are_told(serve: Callable[..., InProcessServer]) -> None:
    with lines() as log:
        server = serve(load=False)
        with stub_of(server.address, enable_retries=0) as stub:
            assert fails(stub.Translate, ours(TEXT)) == "UNAVAILABLE"
            server.load()
            assert stub.Translate(ours("Hello"), timeout=patient(30)).translations
            assert fails(stub.Translate, ours()) == "INVALID_ARGUMENT"
    assert [(line["level"], line["code"]) for line in log.calls()] == [("warning", "UNAVAILABLE")]
