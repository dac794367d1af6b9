"""What is logged about calls, and that their texts never are."""

import asyncio
import json
import logging
import re
import warnings
from pathlib import Path
from typing import Any

import grpc
import pytest

from service.domain.call import current_call
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.api.http_faces import send
from tests.grpc_calls import google_request, refused, request_of, stub_of, ways_of
from tests.http_caller import call
from tests.http_post import form_of
from tests.key_files import ALICE, write_keys
from tests.log_lines import lines
from tests.patience import patient
from tests.servers import REPOSITORY, Serve, distinct_texts, eventually

SECRET = "Zwetschgenkuchen"
TEXT = f"keys {SECRET} window"
TRANSLATE = "dragoman.v1.TranslationService/Translate"


def everything(address: str) -> list[str]:
    """Make calls of every kind that contain the secret, including ones that fail because of it; return their codes."""
    with grpc.insecure_channel(address, options=[("grpc.enable_retries", 0)]) as channel:
        own, infer = pb_grpc.TranslationServiceStub(channel), kserve_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        translate_text = google_grpc.TranslationServiceStub(channel).TranslateText
        for send in ways_of(channel).values():
            send([TEXT])
        terms = [pb.Term(source=SECRET, target=SECRET)]
        own.Translate(request_of([f"<b>{TEXT}</b>"], mime_type="text/html", terms=terms), timeout=patient(30))
        own.DetectLanguage(pb.DetectLanguageRequest(texts=[TEXT]), timeout=patient(30))
        errors = [
            refused(own.Translate, request_of([" ".join([SECRET] * 4000)], strict=True)),
            refused(own.Translate, request_of([TEXT], target_language_code=SECRET)),
            refused(own.Translate, request_of([TEXT], model=SECRET)),
            refused(own.Translate, request_of([TEXT], glossary=SECRET)),
            refused(own.Translate, request_of([TEXT], target_prefixes=[SECRET] * 3)),
            refused(own.TranslateStream, request_of([TEXT], mime_type=SECRET)),
            refused(translate_text, google_request([TEXT], target_language_code=SECRET)),
            refused(infer, kserve_pb.ModelInferRequest(model_name=SECRET)),
        ]
    return [error.code().name for error in errors]


@pytest.mark.parametrize("log_text", [False, True])
def test_no_line_holds_a_caller_s_text_unless_it_may(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, log_text: bool
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
                assert refused(stub.Translate, request_of([TEXT])).code() is grpc.StatusCode.INTERNAL
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
    serve: Serve, monkeypatch: pytest.MonkeyPatch
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
                request_of(texts), timeout=patient(30), metadata=[("x-request-id", "r-7")]
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


def shipped_fields() -> dict[str, tuple[str, str]]:
    """Return for each field in the table of docs/operations.md whether it is a label, and whether it is personal."""
    section = (REPOSITORY / "docs/operations.md").read_text(encoding="utf-8").split("### Fields")[1]
    rows = re.findall(r"^\| (`.+?) \| .*? \| (.*?) ?\| (.*?) ?\|$", section, re.MULTILINE)
    return {name: (label, personal) for names, label, personal in rows for name in re.findall(r"`(\w+)`", names)}


# Each mark is in one part of a call: its key's name, its id, its text, the name of its document, its API key.
NAME, ID, FILE = "anna-zwetschge", "anna@example.org", "Zwetschgenliste"


@pytest.mark.parametrize("log_text", [False, True])
def test_the_page_tells_of_every_field_and_whether_it_is_personal(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_text: bool
) -> None:
    marks = {NAME: "key", ID: "request_id", SECRET: "source_texts", FILE: "", ALICE: "", "127.0.0.1": ""}
    known = shipped_fields()
    with lines(shows_texts=log_text) as log:
        keys = write_keys(tmp_path, **{NAME: ALICE})
        server = serve(access_log_ratio=1.0, log_text=log_text, api_keys=keys, http_port=0)
        log.lines.clear()  # of the start
        how = {"x_api_key": ALICE, "x_request_id": ID}
        send(server, "v1", TEXT, **how)
        body, content_type = form_of(f"{FILE}.txt", TEXT, {"target_language_code": "de"})
        call(server.http_url, "POST", "/v1/files", body=body, content_type=content_type, **how)
        body, content_type = form_of(f"{FILE}.docx", TEXT, {"target_language_code": "de"})
        call(server.http_url, "POST", "/v1/files", body=body, content_type=content_type, **how)

        async def quotes(request: Any) -> None:
            raise ValueError(f"can't make anything of {request.texts[0]!r}")

        monkeypatch.setattr(server.server.translator, "translate", quotes)
        send(server, "v1", TEXT, **how)
        eventually(lambda: len(log.calls()) == 4)
    found = [json.loads(line) for line in log.lines]
    fields = {name for line in found for name in line}
    assert fields <= known.keys()
    assert known.keys() - fields == ({"trace_id"} if log_text else {"trace_id", "source_texts"})
    for mark, field in marks.items():
        places = {name for line in found for name, value in line.items() if mark in str(value)}
        shown = {"exception"} if log_text and mark == SECRET else set()  # the message of the last call's
        assert places <= {field} | shown, mark
        assert bool(places) is bool(field and (log_text or mark != SECRET)), mark
        assert all(known[name][1] for name in places), f"{mark} is told of as not personal"


def test_only_fields_of_few_values_are_labels() -> None:
    section = (REPOSITORY / "docs/operations.md").read_text(encoding="utf-8").split("### Fields")[1]
    labels, metadata = (
        set(re.findall(r"{{ (\w+) }}", re.search(rf"^ +{name}: (.+)$", section, re.MULTILINE)[1]))  # type: ignore[index]
        for name in ("labels", "structured_metadata")
    )
    known = shipped_fields()
    assert labels == {name for name, (label, _) in known.items() if label == "label"}
    assert metadata == {name for name, (label, _) in known.items() if "metadata" in label}


def test_without_an_access_log_only_failures_of_the_server_are_told(serve: Serve) -> None:
    with lines() as log:
        server = serve(load=False)
        with stub_of(server.address, enable_retries=0) as stub:
            assert refused(stub.Translate, request_of([TEXT])).code() is grpc.StatusCode.UNAVAILABLE
            server.load()
            assert stub.Translate(request_of(["Hello"]), timeout=patient(30)).translations
            assert refused(stub.Translate, request_of([])).code() is grpc.StatusCode.INVALID_ARGUMENT
    assert [(line["level"], line["code"]) for line in log.calls()] == [("warning", "UNAVAILABLE")]
