"""Reflection, in both of its versions: tools of today ask for v1 first."""

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from tests.patience import patient
from tests.servers import InProcessServer

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
