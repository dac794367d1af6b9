"""API keys: which methods they permit, quotas, of which a caller has one for all APIs, and a key file that changes."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from hyperframe.frame import HeadersFrame

from benchmarks import http2_frames as http2
from dragoman_client import Client, ClientError
from service.calls.keys import Quotas, key_lines, new_key
from service.engine import scheduler
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from tests.api.http_faces import FACES, send
from tests.callers import on_new_connections
from tests.certificates import replace
from tests.faults.raw_connection import METHOD, RawConnection
from tests.gate import Gate
from tests.grpc_calls import (
    WAYS,
    detail_of,
    infer_request,
    refused,
    request_of,
    retry_seconds,
    stub_of,
    ways_of,
)
from tests.http_caller import Reply, call
from tests.http_post import form_of
from tests.key_files import ALICE, BOB, NO_QUOTAS, write_keys
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts, eventually

METHODS = [
    method
    for file, service in (
        (pb, "TranslationService"),
        (google_pb, "TranslationService"),
        (kserve_pb, "GRPCInferenceService"),
    )
    for method in file.DESCRIPTOR.services_by_name[service].methods
    if method.name not in ("ServerLive", "ServerReady")  # KServe's health checks
]


def write(path: Path, *keys: tuple[str, str, Quotas], expires: datetime | None = None) -> None:
    replace(path, "\n".join(key_lines(key, name, expires, quotas) for name, key, quotas in keys).encode())


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return write_keys(tmp_path, alice=ALICE, bob=BOB)


def full_name(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


@pytest.mark.parametrize("method", METHODS, ids=full_name)
def test_every_method_of_every_api_asks_for_a_key(keyed: InProcessServer, method: MethodDescriptor) -> None:
    with grpc.insecure_channel(keyed.address) as channel:
        asked: Any = channel  # the stubs demand serializers
        if method.client_streaming:
            error = refused(asked.stream_stream(full_name(method)), iter([b""]))
        else:
            kind = asked.unary_stream if method.server_streaming else asked.unary_unary
            error = refused(kind(full_name(method)), b"")
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert error.details() == (
        "this server requires an API key; send one as metadata 'authorization: Bearer KEY' or 'x-api-key: KEY'."
    )
    assert any(item.key == "x-request-id" for item in error.trailing_metadata())


def test_health_and_reflection_ask_for_none(keyed: InProcessServer) -> None:
    with grpc.insecure_channel(keyed.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=patient(30)).status == 1
        assert next(health.Watch(health_pb2.HealthCheckRequest(), timeout=patient(30))).status == 1
        kserve = kserve_grpc.GRPCInferenceServiceStub(channel)
        assert kserve.ServerLive(kserve_pb.ServerLiveRequest(), timeout=patient(30)).live
        assert kserve.ServerReady(kserve_pb.ServerReadyRequest(), timeout=patient(30)).ready
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        answer = next(
            reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([request]), timeout=patient(30))
        )
        assert answer.list_services_response.service


def test_nothing_is_received_from_who_has_no_key(keyed: InProcessServer) -> None:
    with RawConnection(keyed.server.port) as raw:
        raw.greeted()
        raw.send(http2.call(1, METHOD + "Translate"))  # and sends no message
        assert b"grpc-status\x0216" in raw.until(HeadersFrame).data


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("authorization", "Bearer "), ("authorization", "bearer  "), ("x-api-key", ""), ("x-goog-api-key", "")],
)
def test_a_key_comes_in_any_of_the_usual_ways(keyed: InProcessServer, name: str, prefix: str) -> None:
    before = keyed.metric("dragoman_key_requests_total", key="alice")
    with grpc.insecure_channel(keyed.address) as channel:
        for send in ways_of(channel).values():
            send(["Hello"], metadata=((name, prefix + ALICE),))
    assert keyed.metric("dragoman_key_requests_total", key="alice") - before == len(WAYS)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ((("authorization", "Bearer dgm_wrong"),), "the API key is unknown; check it for typos, or ask for a"),
        ((("authorization", f"Basic {ALICE}"),), "this server requires an API key; send one as metadata"),
        ((("authorization", "Bearer"),), "this server requires an API key"),
        ((("x-api-key", ""),), "this server requires an API key"),
        ((("x-api-key-bin", ALICE.encode()),), "this server requires an API key"),
    ],
)
def test_what_is_no_good_key_is_refused(keyed: InProcessServer, metadata: Any, message: str) -> None:
    with stub_of(keyed.address) as stub:
        before = keyed.metric("dragoman_rejected_total", reason="unauthenticated")
        error = refused(stub.Translate, request_of(["Hello"]), metadata=metadata)
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED
        assert error.details().startswith(message)
        assert keyed.metric("dragoman_rejected_total", reason="unauthenticated") == before + 1


def test_an_expired_key_is_refused(serve: Serve, keys: Path) -> None:
    write(keys, ("alice", ALICE, NO_QUOTAS), expires=datetime.now(UTC) - timedelta(seconds=1))
    server = serve(api_keys=keys)
    with server.client(api_key=ALICE) as client, pytest.raises(ClientError) as raised:
        client.models()
    assert raised.value.code == "UNAUTHENTICATED"
    assert str(raised.value).startswith("the API key alice expired at 20")
    assert str(raised.value).endswith(" UTC; ask for a new one.")


def test_tokens_are_those_of_the_answer(serve: Serve, keys: Path) -> None:
    server = serve(api_keys=keys)
    with server.client(api_key=ALICE) as alice, server.client(api_key=BOB) as bob:
        texts = distinct_texts(8)
        answers = alice.translate(texts, "en", "de")
        segments = [segment for answer in answers for segment in answer.segments]
        used = sum(segment.num_source_tokens + segment.num_output_tokens for segment in segments)
        assert used > 8
        assert server.metric("dragoman_key_tokens_total", key="alice") == used
        list(bob.stream(texts, "en", "de"))
        assert server.metric("dragoman_key_tokens_total", key="bob") == used


@pytest.mark.plain
def test_who_leaves_a_stream_before_its_last_word_has_paid_for_what_came(
    serve: Serve, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_MOST_STEPS", 1)  # or a sentence would end in its first run
    write(keys, ("bob", BOB, NO_QUOTAS))
    server = serve(api_keys=keys, max_slots=1)
    options = pb.DecodingOptions(max_output_tokens=96, max_length_ratio=0, max_repeats=0)
    request = request_of(distinct_texts(40), options=options)
    engine = server.server.models[0].engine

    def is_idle() -> bool:
        return engine.snapshot().num_running == engine.snapshot().num_waiting == 0

    def used(name: str) -> float:
        return server.metric("dragoman_key_tokens_total", key=name)

    with stub_of(server.address) as stub, server.client(api_key=ALICE) as alice:
        call = stub.Translate.future(request, timeout=patient(30), metadata=(("x-api-key", BOB),))
        eventually(lambda: used("bob") > 0)
        call.cancel()
        eventually(is_idle)
        sources = int(used("bob"))  # all that is known while a call is under way that is answered at its end
        write(keys, ("alice", ALICE, Quotas(tokens_per_minute=sources + 3)))
        eventually(lambda: is_let_in(alice))
        parts = stub.TranslateStream(request, timeout=patient(30), metadata=(("x-api-key", ALICE),))
        received = [next(parts) for _ in range(4)]
        parts.cancel()
        assert not any(part.HasField("translation") for part in received), "else it is charged as what has ended"
        eventually(is_idle)
        assert used("alice") >= sources + 3
        error = refused(stub.Translate, request_of(["Hello"]), metadata=(("x-api-key", ALICE),))
        assert f"key alice has used up its quota of {sources + 3} tokens per minute" in error.details()


def test_each_request_of_a_stream_is_held_to_the_quota(serve: Serve, keys: Path) -> None:
    write(keys, ("alice", ALICE, Quotas(requests_per_minute=2)))
    server = serve(api_keys=keys)
    request = infer_request("Hello")
    with grpc.insecure_channel(server.address) as channel:
        stub = kserve_grpc.GRPCInferenceServiceStub(channel)
        calls = stub.ModelStreamInfer(iter([request] * 4), timeout=patient(30), metadata=(("x-api-key", ALICE),))
        messages = [answer.error_message for answer in calls]
    assert messages[:2] == ["", ""]
    assert all(
        message.startswith("RESOURCE_EXHAUSTED: key alice has used up its quota of 2 req") for message in messages[2:]
    )
    assert len(messages) == 4


def test_a_key_that_is_taken_back_ends_a_streams_calls(serve: Serve, keys: Path) -> None:
    server = serve(api_keys=keys)
    request = infer_request("Hello")
    go_on = threading.Event()

    def requests() -> Any:
        yield request
        assert go_on.wait(patient(30))
        yield request

    with grpc.insecure_channel(server.address) as channel, server.client(api_key=ALICE) as client:
        stub = kserve_grpc.GRPCInferenceServiceStub(channel)
        answers = stub.ModelStreamInfer(requests(), timeout=patient(60), metadata=(("x-api-key", ALICE),))
        assert next(answers).error_message == ""
        write(keys, ("bob", BOB, NO_QUOTAS))
        eventually(lambda: not is_let_in(client))
        go_on.set()
        assert next(answers).error_message.startswith("UNAUTHENTICATED: the API key is unknown")


def is_let_in(client: Client) -> bool:
    try:
        client.models()
    except ClientError as error:
        if error.code != "UNAUTHENTICATED":
            raise
        return False
    return True


@pytest.mark.parametrize("num_rotations", [3, pytest.param(40, marks=pytest.mark.full)])
def test_rotation_of_the_key_file_under_load_fails_no_call(
    serve: Serve, keys: Path, caplog: pytest.LogCaptureFixture, num_rotations: int
) -> None:
    """Each rotation adds a key and revokes the one before last, which is no longer in use."""
    server, ring = serve(api_keys=keys), [ALICE]
    with on_new_connections(server.address, api_key=lambda: ring[-1]) as callers:
        replace(keys, b"[keys.alice")  # which changes nothing
        eventually(lambda: "The previous contents stay in use." in caplog.text)
        for _ in range(num_rotations):
            old, new = ring[-1], new_key()
            write(keys, ("old", old, NO_QUOTAS), ("new", new, NO_QUOTAS))
            with server.client(api_key=new) as client:
                eventually(lambda client=client: is_let_in(client))  # type: ignore[misc]
            ring.append(new)
            callers.wait_for_more(2)
    assert callers.failures == []
    with server.client(api_key=ALICE) as client:
        assert not is_let_in(client)


def test_a_file_that_everybody_can_read_is_warned_of(
    serve: Serve, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys.chmod(0o644)
    serve(api_keys=keys, load=False)
    (record,) = caplog.records
    assert record.getMessage() == f"{keys} (API keys) can be read by every user of this machine; chmod o-r it."


METADATA = (("x-api-key", BOB),)


def send_file(server: InProcessServer) -> Reply:
    body, content_type = form_of("a.txt", "station", {"target_language_code": "de"})
    return call(server.http_url, "POST", "/v1/files", body=body, content_type=content_type, x_api_key=BOB)


@pytest.mark.parametrize(
    ("quotas", "problem", "status_of_deepl"),
    [
        (Quotas(requests_per_minute=1), "1 request per minute", 429),
        (Quotas(tokens_per_minute=1), "1 token per minute", 456),  # waiting for a second or two is no use
        (Quotas(concurrent_calls=1), "1 call in progress; allowed: 1 at a time", 429),
    ],
    ids=["requests", "tokens", "concurrent"],
)
def test_what_is_used_up_is_used_up_on_every_api(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quotas: Quotas, problem: str, status_of_deepl: int
) -> None:
    server = serve(http_port=0, api_keys=write_keys(tmp_path, quotas, bob=BOB), max_slots=1)
    gate = Gate(server, monkeypatch)
    with stub_of(server.address) as stub:
        first = stub.Translate.future(request_of(distinct_texts(1)), timeout=patient(60), metadata=METADATA)
        gate.wait()
        if not quotas.concurrent_calls:
            gate.open()
            first.result()
        replies = {name: send(server, name, "station", x_api_key=BOB) for name in FACES}
        replies["files"] = send_file(server)
        error = refused(stub.Translate, request_of(distinct_texts(1)), metadata=METADATA)
        gate.open()
        first.result()
    for name, reply in replies.items():
        assert reply.status == (status_of_deepl if name == "deepl" else 429), (name, reply.body)
        assert 0 < int(reply.headers["retry-after"]) <= 120
        assert "key bob has" in reply.body.decode()
        assert problem in reply.body.decode()
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert problem in error.details()
    assert detail_of(error, error_details_pb2.ErrorInfo).reason == "QUOTA"
    assert 0 < retry_seconds(error) <= 120
    assert server.metric("dragoman_key_refused_total", key="bob") == len(replies) + 1


QUICK = ("/v2/usage", "/v2/languages", "/v2/glossaries", "/v1/models", "/language/translate/v2/languages")


def test_who_has_used_up_the_tokens_may_ask_what_takes_none(serve: Serve, tmp_path: Path) -> None:
    """Otherwise DeepL's clients could not find out, nor fetch the document that has used them up."""
    server = serve(http_port=0, api_keys=write_keys(tmp_path, Quotas(tokens_per_minute=1), bob=BOB))
    body, content_type = form_of("a.txt", "station", {"target_lang": "DE"})
    upload = call(server.http_url, "POST", "/v2/document", body=body, content_type=content_type, x_api_key=BOB)
    key, path = {"document_key": upload.document["document_key"]}, f"/v2/document/{upload.document['document_id']}"
    # On a busy machine the upload is answered before its document is translated, and its tokens counted.
    eventually(lambda: call(server.http_url, "POST", path, key, x_api_key=BOB).document["status"] == "done")
    assert send(server, "deepl", "station", x_api_key=BOB).status == 456
    usage = call(server.http_url, "GET", "/v2/usage", x_api_key=BOB).document
    assert usage["character_count"] >= usage["character_limit"] == 1
    for quick in QUICK:
        assert call(server.http_url, "GET", quick, x_api_key=BOB).status == 200, quick
    with server.client(api_key=BOB) as client:
        assert [model.name for model in client.models()] == ["tiny"]
    with grpc.insecure_channel(server.address) as channel:
        kserve = kserve_grpc.GRPCInferenceServiceStub(channel)
        for ask, request in (
            (kserve.ServerMetadata, kserve_pb.ServerMetadataRequest()),
            (kserve.ModelReady, kserve_pb.ModelReadyRequest(name="tiny")),
            (kserve.ModelMetadata, kserve_pb.ModelMetadataRequest(name="tiny")),
            (kserve.RepositoryIndex, kserve_pb.RepositoryIndexRequest()),
        ):
            ask(request, timeout=patient(30), metadata=METADATA)
    assert call(server.http_url, "POST", path, key, x_api_key=BOB).document["status"] == "done"
    assert call(server.http_url, "POST", f"{path}/result", key, x_api_key=BOB).status == 200


def test_what_takes_no_tokens_is_a_call(serve: Serve, tmp_path: Path) -> None:
    keys = {f"of_{number}": new_key() for number in range(len(QUICK))}
    server = serve(http_port=0, api_keys=write_keys(tmp_path, Quotas(requests_per_minute=1), **keys))
    for path, key in zip(QUICK, keys.values(), strict=True):
        assert [call(server.http_url, "GET", path, x_api_key=key).status for _ in range(2)] == [200, 429], path
