"""One server for the tests that leave its state unchanged."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from service.config.server_config import ServerConfig
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.key_files import ALICE, BOB, write_keys
from tests.servers import InProcessServer, LoopThread, in_process


@pytest.fixture(scope="package")
def server(loop_thread: LoopThread, tiny_models: Path) -> Iterator[InProcessServer]:
    with in_process(loop_thread, ServerConfig(models=tiny_models, num_threads=1, http_port=0)) as running:
        yield running


@pytest.fixture(scope="package")
def keyed(
    loop_thread: LoopThread, tiny_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcessServer]:
    """Yield one that asks for keys."""
    keys = write_keys(tmp_path_factory.mktemp("keys"), alice=ALICE, bob=BOB)
    config = ServerConfig(models=tiny_models, num_threads=1, http_port=0, api_keys=keys)
    with in_process(loop_thread, config) as running:
        yield running


@pytest.fixture
def stub(server: InProcessServer) -> Iterator[pb_grpc.TranslationServiceStub]:
    with grpc.insecure_channel(server.address) as channel:
        yield pb_grpc.TranslationServiceStub(channel)
