"""A server's lifecycle from the first port to the last answer: loading, serving, draining, failing."""

import itertools
import threading
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import refused, request_of, stub_of
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts, eventually, rpc_error

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
SERVICES = [
    "",
    "dragoman.v1.TranslationService",
    "google.cloud.translation.v3.TranslationService",
    "inference.GRPCInferenceService",
]


def request(num_texts: int) -> Any:
    return request_of(distinct_texts(num_texts))


def health(channel: grpc.Channel, service: Any = "") -> Any:
    asked = health_pb2.HealthCheckRequest(service=service)
    return health_pb2_grpc.HealthStub(channel).Check(asked, timeout=patient(30)).status


def test_nothing_is_served_before_the_model_is_loaded(serve: Serve) -> None:
    server = serve(load=False)
    with grpc.insecure_channel(server.address) as channel:
        stub = pb_grpc.TranslationServiceStub(channel)
        assert [health(channel, service) for service in SERVICES] == [NOT_SERVING] * len(SERVICES)
        assert server.get("/readyz")[0] == 503
        assert server.get("/livez")[0] == 200
        assert server.metric("dragoman_ready") == 0
        detection = pb.DetectLanguageRequest(texts=["Hello"])
        for method, message in (
            *((stub.Translate, request(1)), (stub.TranslateStream, request(1))),
            *((stub.DetectLanguage, detection), (stub.ListModels, pb.ListModelsRequest())),
        ):
            error = refused(method, message)
            assert error.code() is grpc.StatusCode.UNAVAILABLE
            assert "loading" in error.details()
        server.load()
        assert [health(channel, service) for service in SERVICES] == [SERVING] * len(SERVICES)
        assert server.get("/readyz") == (200, "text/plain; charset=utf-8", "serving\n")
        assert server.metric("dragoman_ready") == 1
        assert len(stub.Translate(request(1), timeout=patient(30)).translations) == 1


def test_health_of_an_unknown_service_is_not_found(server: InProcessServer) -> None:
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as raised:
        health(channel, "no.such.Service")
    assert rpc_error(raised).code() is grpc.StatusCode.NOT_FOUND


def test_in_the_drain_delay_calls_are_answered_and_watchers_hear_of_the_stop_at_its_end(serve: Serve) -> None:
    server = serve(drain_delay_seconds=patient(2))
    with grpc.insecure_channel(server.address) as channel:
        stub = pb_grpc.TranslationServiceStub(channel)
        asked = health_pb2.HealthCheckRequest(service=SERVICES[1])
        watches = [health_pb2_grpc.HealthStub(channel).Watch(asked, timeout=patient(30)) for _ in range(2)]
        assert next(watches[0]).status == SERVING
        closing = server.start_closing()
        eventually(lambda: health(channel) == NOT_SERVING, timeout_seconds=1)
        assert next(watches[1]).status == SERVING  # one that begins meanwhile
        assert len(stub.Translate(request(1), timeout=patient(30)).translations) == 1
        assert [next(watch).status for watch in watches] == [NOT_SERVING] * 2
        closing.result(patient(30))


def test_calls_that_outlast_the_grace_are_answered_unavailable(serve: Serve) -> None:
    server = serve(max_slots=1, grace_seconds=0.1)
    with stub_of(server.address) as stub:
        call = stub.Translate.future(request(500), timeout=patient(30))
        eventually(lambda: server.server.models[0].engine.snapshot().num_running > 0)
        server.start_closing().result(patient(10))
        assert call.exception(timeout=patient(30)).code() is grpc.StatusCode.UNAVAILABLE


def test_watches_hear_of_every_change_and_do_not_hold_the_stop(serve: Serve) -> None:
    server = serve(load=False, grace_seconds=20.0)
    with grpc.insecure_channel(server.address) as channel:
        seen: list[list[int]] = [[], [], []]

        def watch(statuses: Any) -> None:
            stub = health_pb2_grpc.HealthStub(channel)
            statuses.extend(
                response.status
                for response in stub.Watch(health_pb2.HealthCheckRequest(service=""), timeout=patient(30))
            )

        watchers = [threading.Thread(target=watch, args=(statuses,)) for statuses in seen]
        gone = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=""), timeout=patient(30))
        assert next(gone).status == NOT_SERVING
        for watcher in watchers:
            watcher.start()
        server.load()
        gone.cancel()  # a watcher that leaves must not affect the others
        server.start_closing().result(patient(10))
        for watcher in watchers:
            watcher.join(patient(10))
            assert not watcher.is_alive()
    for statuses in seen:
        assert statuses[-1] == NOT_SERVING
        assert all(before != after for before, after in itertools.pairwise(statuses))


BOTH = pytest.mark.parametrize("version", ["v1", "v1alpha"])


def ask(server: InProcessServer, version: str, **asked: str) -> ServerReflectionResponse:
    with grpc.insecure_channel(server.address) as channel:
        method = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=ServerReflectionRequest.SerializeToString,
            response_deserializer=ServerReflectionResponse.FromString,
        )
        [answer] = method(iter([ServerReflectionRequest(**asked)]), timeout=patient(30))
    return answer


@BOTH
def test_each_listed_service_is_described(server: InProcessServer, version: str) -> None:
    listed = [each.name for each in ask(server, version, list_services="*").list_services_response.service]
    assert {f"grpc.reflection.{each}.ServerReflection" for each in ("v1", "v1alpha")} < set(listed)
    assert "dragoman.v1.TranslationService" in listed
    for name in listed:
        files = ask(server, version, file_containing_symbol=name).file_descriptor_response.file_descriptor_proto
        described = [FileDescriptorProto.FromString(file) for file in files]
        assert name in [f"{each.package}.{service.name}" for each in described for service in each.service]


def test_reflection_is_all_that_a_client_needs(server: InProcessServer) -> None:
    service, name = "dragoman.v1.TranslationService", "Translate"
    with grpc.insecure_channel(server.address) as channel:
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        method = pool.FindServiceByName(service).FindMethodByName(name)
        call = channel.unary_unary(
            f"/{service}/{name}",
            request_serializer=lambda message: bytes(message.SerializeToString()),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        pair = {"source_language_code": "en", "target_language_code": "de"}
        answer = call(GetMessageClass(method.input_type)(texts=["Hello", ""], **pair), timeout=patient(30))
    assert [bool(each.text) for each in answer.translations] == [True, False]
