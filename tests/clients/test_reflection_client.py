"""A client without .proto files and without our code, which learns everything from the server's reflection."""

import subprocess
import sys
from pathlib import Path

from tests.patience import patient
from tests.servers import ServerProcess

SCRIPT = """
import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

channel = grpc.insecure_channel(sys.argv[1])
database = ProtoReflectionDescriptorDatabase(channel)
print(sorted(database.get_services()))
pool = DescriptorPool(database)
method = pool.FindServiceByName("dragoman.v1.TranslationService").FindMethodByName("Translate")
request = GetMessageClass(method.input_type)(
    texts=["Hello", ""], source_language_code="en", target_language_code="de", options={"max_output_tokens": 4}
)
call = channel.unary_unary(
    "/dragoman.v1.TranslationService/Translate",
    request_serializer=lambda message: message.SerializeToString(),
    response_deserializer=GetMessageClass(method.output_type).FromString,
)
response = call(request, timeout=30)
print(len(response.translations), bool(response.translations[0].text), repr(response.translations[1].text))
health = pool.FindServiceByName("grpc.health.v1.Health").FindMethodByName("Check")
check = channel.unary_unary(
    "/grpc.health.v1.Health/Check",
    request_serializer=lambda message: message.SerializeToString(),
    response_deserializer=GetMessageClass(health.output_type).FromString,
)
print(check(GetMessageClass(health.input_type)(), timeout=30).status)
assert not [name for name in sys.modules if name.split(".")[0] == "service"]
"""


def test_reflection_is_all_that_a_client_needs(server: ServerProcess, tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(SCRIPT, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(script), server.address], capture_output=True, text=True, timeout=patient(60), check=False
    )
    assert run.returncode == 0, run.stderr
    services, translated, health = run.stdout.splitlines()
    assert "'dragoman.v1.TranslationService'" in services
    assert "'google.cloud.translation.v3.TranslationService'" in services
    assert "'grpc.health.v1.Health'" in services
    assert translated == "2 True ''"
    assert health == "1"
