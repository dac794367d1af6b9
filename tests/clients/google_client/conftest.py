"""What the checks share. They run in a process of their own, which has Google's client and nothing of ours."""

import itertools
import os
import sys
from collections.abc import Iterator

import grpc
import pytest
from google.cloud.translate_v3 import TranslationServiceClient
from google.cloud.translate_v3.services.translation_service.transports import TranslationServiceGrpcTransport


@pytest.fixture(scope="session")
def address() -> str:
    return os.environ["SERVER_ADDRESS"]


@pytest.fixture(scope="session")
def client(address: str) -> Iterator[TranslationServiceClient]:
    with grpc.insecure_channel(address) as channel:
        yield TranslationServiceClient(transport=TranslationServiceGrpcTransport(channel=channel))


@pytest.fixture(scope="session")
def many() -> list[str]:
    """1024 texts, none like another to the tiny model: they take it a second or more."""
    words = ("station", "file", "window", "keys")
    return [" ".join(chosen) for chosen in itertools.product(words, repeat=5)]


@pytest.fixture(scope="session", autouse=True)
def nothing_of_ours() -> Iterator[None]:
    yield
    assert not [name for name in sys.modules if name.split(".")[0] == "service"]
