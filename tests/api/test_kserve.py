"""KServe's API, on our own stubs and by plain requests, in each phase of the server. Real clients: tests/clients."""

import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from service.domain.errors import Overloaded
from service.domain.translation import Priority
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as pb_grpc
from tests.grpc_calls import infer_request, refused
from tests.http_caller import Reply, call
from tests.patience import patient
from tests.servers import InProcessServer, eventually


def phase_of(stub: Any) -> tuple[bool, bool, bool]:
    return (
        stub.ServerLive(pb.ServerLiveRequest(), timeout=patient(10)).live,
        stub.ServerReady(pb.ServerReadyRequest(), timeout=patient(10)).ready,
        stub.ModelReady(pb.ModelReadyRequest(name="tiny"), timeout=patient(10)).ready,
    )


def test_a_server_that_loads_is_live_and_no_more(serve: Any) -> None:
    server = serve(load=False, model_control="explicit", load_model=("tiny",), http_port=0)
    infer = pb.ModelInferRequest(model_name="tiny")
    with grpc.insecure_channel(server.address, options=[("grpc.enable_retries", 0)]) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        assert phase_of(stub) == (True, False, False)
        assert http_phase_of(server) == (200, 400, 400)
        assert post(server, "/v2/repository/index", {"ready": True}).document == []
        for call, request in (
            (stub.ModelInfer, infer),
            (stub.ModelConfig, pb.ModelConfigRequest(name="tiny")),
            (stub.ModelStatistics, pb.ModelStatisticsRequest()),
            (stub.RepositoryModelLoad, pb.RepositoryModelLoadRequest(model_name="tiny")),
            (stub.RepositoryModelUnload, pb.RepositoryModelUnloadRequest(model_name="tiny")),
        ):
            error = refused(call, request, timeout=patient(10))
            assert error.code() is grpc.StatusCode.UNAVAILABLE
        (answer,) = stub.ModelStreamInfer(iter([infer]), timeout=patient(10))
        assert answer.error_message.startswith("UNAVAILABLE: ")
        (index,) = stub.RepositoryIndex(pb.RepositoryIndexRequest(), timeout=patient(10)).models
        assert (index.name, index.state) == ("tiny", "UNAVAILABLE")
        server.load()
        assert phase_of(stub) == (True, True, True)
        assert http_phase_of(server) == (200, 200, 200)
        (index,) = stub.RepositoryIndex(pb.RepositoryIndexRequest(ready=True), timeout=patient(10)).models
        assert (index.name, index.version, index.state) == ("tiny", "1", "READY")
        [index] = post(server, "/v2/repository/index", {"ready": True}).document
        assert index == {"name": "tiny", "version": "1", "state": "READY", "reason": ""}


def test_an_open_stream_does_not_hold_up_a_stop(serve: Any) -> None:
    server, is_over = serve(grace_seconds=patient(30)), threading.Event()

    def requests() -> Iterator[pb.ModelInferRequest]:
        yield infer_request("Hello")
        assert is_over.wait(patient(60))

    with grpc.insecure_channel(server.address) as channel:
        answers = pb_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(requests(), timeout=patient(60))
        assert next(answers).error_message == ""
        closing = server.start_closing()
        assert refused(lambda timeout: next(answers)).code() is grpc.StatusCode.UNAVAILABLE
        closing.result(patient(15))  # and not only after the grace period
        is_over.set()


INFER = "/v2/models/tiny/infer"


def asked(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": texts}], **fields}


def get(server: InProcessServer, path: str) -> Reply:
    return call(server.http_url, "GET", path)


def post(server: InProcessServer, path: str, document: Any = None, **headers: str) -> Reply:
    return call(server.http_url, "POST", path, document, None, **headers)


def http_phase_of(server: InProcessServer) -> tuple[int, int, int]:
    paths = ("/v2/health/live", "/v2/health/ready", "/v2/models/tiny/ready")
    live, ready, model = (get(server, path) for path in paths)
    assert live.document == {"live": live.status == 200}
    assert ready.document == {"ready": ready.status == 200}
    assert model.document == {"name": "tiny", "ready": model.status == 200}
    return live.status, ready.status, model.status


def test_a_server_whose_engine_died_for_good_is_not_live(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.models.supervisor.MAX_RESTARTS", 0)
    server = serve(http_port=0)
    (worker,) = server.server.models[0].engine.turns.workers

    def die(*arguments: Any, **how: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(worker, "run", die)
    assert post(server, INFER, asked("Hello")).status == 503
    eventually(lambda: http_phase_of(server) == (400, 400, 400))


def test_pages_of_other_sites_load_and_unload_nothing(serve: Any) -> None:
    server = serve(model_control="explicit", load_model=("tiny",), http_port=0, http_origin=("https://example.org",))
    for what in ("load", "unload"):
        for origin in ("https://example.org", "null"):
            reply = post(server, f"/v2/repository/models/tiny/{what}", origin=origin)
            assert reply.status == 403
            assert "Origin" in reply.error
    assert post(server, INFER, asked("Hello"), origin="https://example.org").status == 200  # which it may call
    assert http_phase_of(server) == (200, 200, 200)
    own = post(server, "/v2/repository/models/tiny/unload", origin=server.http_url)
    assert (own.status, own.document) == (200, {})
    assert http_phase_of(server) == (200, 200, 400)


def test_overload_rejects_inference_by_priority_and_nothing_else(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(http_port=0)
    engine = server.server.models[0].engine
    check_queue = engine.check_queue

    def full(priority: Priority, *arguments: Any) -> None:
        if priority is not Priority.HIGH:
            raise Overloaded("the queue is full", 2.0)
        check_queue(priority, *arguments)

    monkeypatch.setattr(engine, "check_queue", full)
    rejected = post(server, INFER, asked("Hello", parameters={"priority": 3}))
    assert rejected.status == 429
    assert rejected.headers["retry-after"] == "2"
    assert "the queue is full" in rejected.error
    assert post(server, INFER, asked("Hello", parameters={"priority": 1})).status == 200
    assert http_phase_of(server) == (200, 200, 200)
