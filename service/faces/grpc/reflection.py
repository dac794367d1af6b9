"""gRPC's reflection in both versions: v1, which today's tools ask first, and v1alpha, all that grpcio-reflection has.

Both have the same messages: https://github.com/grpc/grpc-proto/blob/master/grpc/reflection/v1/reflection.proto.
"""

from collections.abc import Iterable

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from grpc_reflection.v1alpha import reflection, reflection_pb2

_OLD = reflection.SERVICE_NAME
SERVICE_NAMES = (_OLD.replace(".v1alpha.", ".v1."), _OLD)
_METHOD = "ServerReflectionInfo"


def enable_reflection(names: Iterable[str], server: grpc.aio.Server) -> None:
    """Describe the services of these names, and reflection itself, to callers of a server that is not yet started."""
    _describe()
    servicer = reflection.aio.ReflectionServicer([*names, *SERVICE_NAMES])  # type: ignore[attr-defined]  # no stub
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    handlers = (grpc.method_handlers_generic_handler(name, {_METHOD: handler}) for name in SERVICE_NAMES)
    server.add_generic_rpc_handlers(tuple(handlers))


def _describe() -> None:
    """Put v1's file where descriptions come from. Idempotent."""
    old = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(old)
    new = text_format.MessageToString(old).replace("v1alpha", "v1")
    descriptor_pool.Default().Add(text_format.Parse(new, descriptor_pb2.FileDescriptorProto()))
