"""Quotas over all servers, by deploy/envoy: a real Envoy before real servers, and a stand-in for the service it asks.

The stand-in speaks the service's protocol and reads its file. It counts without minutes.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from dragoman_client import Client, ClientError
from service.calls.keys import new_key
from tests.grpc_calls import refused, request_of, stub_of
from tests.key_files import write_keys
from tests.proxies import envoy
from tests.servers import REPOSITORY, Serve, eventually

SERVICE_YAML = REPOSITORY / "deploy/envoy/rate_limit_service.yaml"
SHOP, NIGHTLY, OTHER = new_key(), new_key(), new_key()
OVER_LIMIT = 2


def _request_type() -> Any:
    """Return the part of `envoy.service.ratelimit.v3.RateLimitRequest` that is read here."""
    text, message, repeated = 9, 11, 3
    file = descriptor_pb2.FileDescriptorProto(name="rls.proto", package="rls", syntax="proto3")
    for name, fields in {
        "Entry": [("key", 1, text, 1, ""), ("value", 2, text, 1, "")],
        "Descriptor": [("entries", 1, message, repeated, ".rls.Entry")],
        "Request": [("domain", 1, text, 1, ""), ("descriptors", 2, message, repeated, ".rls.Descriptor")],
    }.items():
        kind = file.message_type.add(name=name)
        for field, number, of, label, type_name in fields:
            kind.field.add(name=field, number=number, type=of, label=label, type_name=type_name or None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("rls.Request"))


class RateLimits:
    """A stand-in for the rate limit service: the limits of its file, for real keys in place of those of the example."""

    def __init__(self, keys: list[str], most: int) -> None:
        config = yaml.safe_load(SERVICE_YAML.read_text())
        assert config["domain"] == "dragoman"
        self.seen: list[list[tuple[str, str]]] = []
        self._used: Counter[tuple[str, str]] = Counter()
        self._request = _request_type()
        self._most = {
            (each["key"], key[: len(each["value"])]): most
            for each, key in zip(config["descriptors"], keys, strict=True)
            if each["rate_limit"]["unit"] == "minute" and each["rate_limit"]["requests_per_unit"]
        }

    def should_rate_limit(self, message: bytes, _: Any) -> bytes:
        request = self._request.FromString(message)
        assert request.domain == "dragoman"
        entries = [(entry.key, entry.value) for each in request.descriptors for entry in each.entries]
        self.seen.append(entries)
        self._used.update(entries)
        is_over = any(self._used[entry] > self._most[entry] for entry in entries if entry in self._most)
        return bytes([8, OVER_LIMIT if is_over else 1])


@contextmanager
def serving(limits: RateLimits) -> Iterator[int]:
    handler = grpc.method_handlers_generic_handler(
        "envoy.service.ratelimit.v3.RateLimitService",
        {"ShouldRateLimit": grpc.unary_unary_rpc_method_handler(limits.should_rate_limit)},
    )
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


def calls_until_refused(client: Client) -> int:
    for number in range(50):
        try:
            client.translate(["Hello"], "en", "de")
        except ClientError as error:
            assert error.code == "RESOURCE_EXHAUSTED", error  # noqa: PT017
            return number
    raise AssertionError("no call was refused")


def test_a_key_has_one_quota_over_all_servers(serve: Serve, tmp_path: Path) -> None:
    keys = write_keys(tmp_path, shop=SHOP, nightly=NIGHTLY, other=OTHER)
    servers = [serve(api_keys=keys, max_slots=4) for _ in range(2)]
    limits = RateLimits([SHOP, NIGHTLY], most=7)
    with serving(limits) as port, envoy(tmp_path, [each.server.port for each in servers], rate_limit_port=port) as url:
        with Client(url, api_key=SHOP, patience_seconds=0) as shop:
            eventually(lambda: is_answered(url))
            assert calls_until_refused(shop) == 7
            answered = [each.metric("dragoman_key_requests_total", key="shop") for each in servers]
            assert sum(answered) == 7
            assert all(answered), "both servers had calls"
        with Client(url, api_key=OTHER, patience_seconds=0) as other:  # which the file does not name
            other.translate(["Hello"] * 10, "en", "de")
        by_each = {"x-goog-api-key": NIGHTLY, "x-api-key": NIGHTLY, "authorization": f"bearer   {NIGHTLY}"}
        with stub_of(url, enable_retries=0) as stub:
            for number, (name, value) in enumerate([*by_each.items()] * 3):
                if number == 7:
                    break
                stub.Translate(request_of(["Hello"]), metadata=((name, value),), timeout=30)
            for name, value in by_each.items():
                error = refused(stub.Translate, request_of(["Hello"]), metadata=((name, value),))
                assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            twice = (("x-api-key", "dgm_nobodys"), ("x-api-key", NIGHTLY))  # of which servers take the last
            evading = refused(stub.Translate, request_of(["Hello"]), metadata=twice)
            assert evading.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            basic = (("authorization", "Basic c2VjcmV0OnNlY3JldA=="),)
            wrong = refused(stub.Translate, request_of(["Hello"]), metadata=basic)
            assert wrong.code() is grpc.StatusCode.UNAUTHENTICATED
    values = {value for entries in limits.seen for _, value in entries}
    assert {SHOP[:12], NIGHTLY[:12], OTHER[:12]} <= values
    assert all(len(value) <= 12 for value in values), "the service saw more of a key than its beginning"


def test_calls_pass_while_the_service_is_away(serve: Serve, tmp_path: Path) -> None:
    servers = [serve(api_keys=write_keys(tmp_path, shop=SHOP), max_slots=4) for _ in range(2)]
    with serving(RateLimits([SHOP, NIGHTLY], most=1)) as port:
        pass
    with envoy(tmp_path, [each.server.port for each in servers], rate_limit_port=port) as url:
        eventually(lambda: is_answered(url))
        with Client(url, api_key=SHOP, patience_seconds=0) as client:
            for _ in range(5):
                client.translate(["Hello"], "en", "de")


def is_answered(url: str) -> bool:
    """Return whether Envoy knows servers that are ready."""
    with stub_of(url, enable_retries=0) as stub:
        return refused(stub.Translate, request_of(["Hello"])).code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("key", [SHOP, NIGHTLY], ids=["shop", "nightly"])
def test_the_example_names_keys_by_as_much_as_envoy_sends(key: str) -> None:
    config = yaml.safe_load(SERVICE_YAML.read_text())
    for each in config["descriptors"]:
        assert len(each["value"]) == 12
        assert each["value"].startswith(key[:4])
