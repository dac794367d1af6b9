"""Checks of a client that learns all from the reflection of a server. See test_foreign_clients.py."""

import json
import sys
from typing import Any

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

SETTINGS = json.loads(sys.argv[1])
channel = grpc.insecure_channel(SETTINGS["address"])
database = ProtoReflectionDescriptorDatabase(channel)
pool = DescriptorPool(database)


def answer(service: str, name: str, **fields: Any) -> Any:
    """Call a method with what the server tells of it."""
    method = pool.FindServiceByName(service).FindMethodByName(name)
    call = channel.unary_unary(
        f"/{service}/{name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    return call(GetMessageClass(method.input_type)(**fields), timeout=SETTINGS["seconds"])


def check_reflection_is_all_that_a_client_needs() -> None:
    services = {"dragoman.v1.TranslationService", "google.cloud.translation.v3.TranslationService"}
    assert services | {"grpc.health.v1.Health"} <= set(database.get_services())
    asked = {"texts": ["Hello", ""], "source_language_code": "en", "target_language_code": "de"}
    first, second = answer("dragoman.v1.TranslationService", "Translate", **asked).translations
    assert first.text
    assert second.text == ""
    assert answer("grpc.health.v1.Health", "Check").status == 1
