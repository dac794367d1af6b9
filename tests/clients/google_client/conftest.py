"""Fixtures of the checks, which run in a process of their own with Google's client and none of our code."""

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
    """Return 1024 texts, all different to the tiny model, which needs a second or more for them."""
    words = ("station", "file", "window", "keys")
    return [" ".join(chosen) for chosen in itertools.product(words, repeat=5)]


@pytest.fixture(scope="session", autouse=True)
def nothing_of_ours() -> Iterator[None]:
    yield
    assert not [name for name in sys.modules if name.split(".")[0] == "service"]
