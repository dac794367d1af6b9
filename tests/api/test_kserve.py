"""KServe's API on our own stubs, in each phase of the server. The real client is tested in tests/clients."""

from typing import Any

import grpc

from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as pb_grpc
from tests.grpc_calls import refused
from tests.patience import patient


def phase_of(stub: Any) -> tuple[bool, bool, bool]:
    return (
        stub.ServerLive(pb.ServerLiveRequest(), timeout=patient(10)).live,
        stub.ServerReady(pb.ServerReadyRequest(), timeout=patient(10)).ready,
        stub.ModelReady(pb.ModelReadyRequest(name="tiny"), timeout=patient(10)).ready,
    )


def test_a_server_that_loads_is_live_and_no_more(serve: Any) -> None:
    server = serve(load=False, model_control="explicit", load_model=("tiny",))
    infer = pb.ModelInferRequest(model_name="tiny")
    with grpc.insecure_channel(server.address, options=[("grpc.enable_retries", 0)]) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        assert phase_of(stub) == (True, False, False)
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
        (index,) = stub.RepositoryIndex(pb.RepositoryIndexRequest(ready=True), timeout=patient(10)).models
        assert (index.name, index.version, index.state) == ("tiny", "1", "READY")


def test_there_is_one_repository(serve: Any) -> None:
    server = serve()
    with grpc.insecure_channel(server.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        error = refused(stub.RepositoryIndex, pb.RepositoryIndexRequest(repository_name="other"), timeout=patient(10))
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
        assert "'other'" in error.details()
