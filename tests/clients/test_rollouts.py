"""Rollouts as Kubernetes does them: servers with new addresses under one name, and no call lost."""

import http.client
import itertools
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from dragoman_client import AsyncClient, Client, Options, target_of
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.callers import Callers
from tests.changing_name import ChangingName
from tests.grpc_calls import request_of
from tests.patience import patient
from tests.servers import LoopThread, ServerProcess, distinct_texts, free_port, read_line

# Longer than the documented clients wait between two questions to the DNS.
DRAIN_SECONDS = 6.0
SHORT = Options(max_output_tokens=4)


class Pods:
    """Servers with one pair of ports and addresses of their own; a name has those that are ready and not stopping."""

    def __init__(self, models: Path, name: ChangingName) -> None:
        self.name = name
        self.port, self.http_port = free_port(), free_port()
        self._models = models
        self._hosts = (f"127.0.0.{number}" for number in itertools.count(2))
        self._starting: list[ServerProcess] = []
        self._ready: dict[str, ServerProcess] = {}
        self._stopping: list[ServerProcess] = []

    def __enter__(self) -> "Pods":
        return self

    def __exit__(self, *_: object) -> None:
        for server in (*self._starting, *self._ready.values(), *self._stopping):
            server.kill()

    @property
    def target(self) -> str:
        return self.name.target(self.port)

    def add(self, number: int = 1) -> None:
        started = {host: self._start(host) for host in itertools.islice(self._hosts, number)}
        self._starting.extend(started.values())
        for server in started.values():
            read_line(server.process)
        self._starting.clear()
        self._ready |= started
        self._publish()

    def _start(self, host: str) -> ServerProcess:
        ports = ("--host", host, "--http-host", host, "--http-port", str(self.http_port))
        times = ("--drain-delay-seconds", str(DRAIN_SECONDS), "--grace-seconds", "10")
        return ServerProcess(self._models, *ports, *times, port=self.port, ready=False)

    def remove_oldest(self) -> ServerProcess:
        """Take the oldest server's address from the name, and tell it to stop."""
        host = next(iter(self._ready))
        server = self._ready.pop(host)
        self._publish()
        server.signal(signal.SIGTERM)
        self._stopping.append(server)
        return server

    def wait_for_stops(self) -> None:
        while self._stopping:
            assert self._stopping[0].wait() == (0, "", "")
            self._stopping.pop(0)

    def _publish(self) -> None:
        self.name.addresses = tuple(self._ready)


def replace_first(pods: Pods) -> None:
    """Replace a server as `maxSurge: 0` does: the new one starts as the old one begins to stop."""
    pods.remove_oldest()
    pods.add()


def replace_after(pods: Pods) -> None:
    """Replace a server as `maxSurge: 0` does where its successor needs its GPU."""
    pods.remove_oldest()
    pods.wait_for_stops()
    pods.add()


def replace_with_surge(pods: Pods) -> None:
    pods.add()
    pods.remove_oldest()


@contextmanager
def pods_of(models: Path, num_servers: int) -> Iterator[Pods]:
    with ChangingName() as name, Pods(models, name) as pods:
        pods.add(num_servers)
        yield pods


def http_call(pods: Pods, stack: ExitStack) -> Callable[[], object]:
    """Return a call over a connection that is kept until the server closes it; each resolves the name."""
    body = json.dumps({"source_language_code": "en", "target_language_code": "de", "text": "Hello"})
    turns = itertools.count()
    kept: list[http.client.HTTPConnection] = []

    def close() -> None:
        while kept:
            kept.pop().close()

    stack.callback(close)

    def translate() -> None:
        if not kept:
            addresses = pods.name.addresses
            host = addresses[next(turns) % len(addresses)]
            kept.append(http.client.HTTPConnection(host, pods.http_port, timeout=patient(30)))
        kept[0].request("POST", "/v1/translate", body, {"content-type": "application/json"})
        response = kept[0].getresponse()
        answer = response.read()
        assert response.status == 200, answer
        if response.will_close:
            close()

    return translate


def grpc_call(channel: grpc.Channel) -> Callable[[], object]:
    stub = pb_grpc.TranslationServiceStub(channel)
    return lambda: stub.Translate(request_of(distinct_texts(1)), timeout=patient(30))


@contextmanager
def calling(pods: Pods, loop: LoopThread, pause_seconds: float = 0.1) -> Iterator[Callers]:
    """Call by both clients, by plain gRPC with the documented settings, and over HTTP; fail if a call is lost."""
    with ExitStack() as stack:
        client = stack.enter_context(Client(pods.target))

        async def connect() -> AsyncClient:
            return AsyncClient(pods.target)

        later = loop.run(connect())
        stack.callback(lambda: loop.run(later.close()))
        documented = target_of(pods.target)
        calls: list[Callable[[], Any]] = [
            lambda: client.translate(distinct_texts(1), "en", "de", options=SHORT),
            lambda: loop.run(later.translate(distinct_texts(1), "en", "de", options=SHORT)),
            grpc_call(stack.enter_context(grpc.insecure_channel(documented.target, documented.options))),
            http_call(pods, stack),
        ]
        callers = stack.enter_context(Callers(*calls, pause_seconds=pause_seconds))
        callers.wait_for_more()
        yield callers
        callers.wait_for_more()
        assert callers.failures == []


def test_two_servers_replaced_one_at_a_time_without_a_surge_lose_no_call(
    tiny_models: Path, loop_thread: LoopThread
) -> None:
    with pods_of(tiny_models, 2) as pods, calling(pods, loop_thread):
        for _ in range(2):
            replace_first(pods)
        pods.wait_for_stops()


def test_a_single_server_replaced_with_a_surge_loses_no_call(tiny_models: Path, loop_thread: LoopThread) -> None:
    with pods_of(tiny_models, 1) as pods, calling(pods, loop_thread):
        replace_with_surge(pods)
        pods.wait_for_stops()


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("replace", "num_servers"), [(replace_first, 2), (replace_after, 2), (replace_with_surge, 1)])
def test_twenty_rollouts_lose_none_of_five_thousand_calls(
    replace: Callable[[Pods], None], num_servers: int, tiny_models: Path, loop_thread: LoopThread
) -> None:
    with pods_of(tiny_models, num_servers) as pods, calling(pods, loop_thread, pause_seconds=0.02) as callers:
        for _ in range(20 * num_servers):
            replace(pods)
            callers.wait_for_more(5000 // (20 * num_servers * 4) + 1)
        pods.wait_for_stops()
    assert callers.num_answers >= 5000
