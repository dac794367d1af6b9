"""Two server processes behind client-side balancing, nginx, Envoy, or on one port: calls are shared, none is lost."""

import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from dragoman_client import Client, Options, target_of
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.callers import Callers
from tests.clients.command_line import dragoman_here
from tests.grpc_calls import request_of
from tests.http_caller import call
from tests.patience import patient
from tests.proxies import envoy, nginx
from tests.servers import (
    REPOSITORY,
    ServerProcess,
    distinct_texts,
    dragoman,
    eventually,
    free_port,
    read_line,
    samples,
)

WAYS = ("round_robin", "nginx", "envoy")
# The drain delay is longer than the intervals of Envoy's health checks and of gRPC's attempts to connect. Connections
# are closed all the time, which callers must not notice.
FLAGS = (
    *("--drain-delay-seconds", "1.5", "--grace-seconds", "10", "--max-connection-age-seconds", "2"),
    *("--max-characters", "1000000"),
)
NUM_LONG = 500
SHORT = Options(max_output_tokens=4)
TRANSLATED = r'dragoman_requests_total{code="OK",kind="translate",method="dragoman.v1.TranslationService/Translate"}'
UNIT = REPOSITORY / "deploy" / "systemd" / "dragoman@.service"


class Replicas:
    """Two servers that can be restarted on the same ports."""

    def __init__(self, models: Path) -> None:
        self._models = models
        self.servers = [ServerProcess(models, *FLAGS, ready=False) for _ in range(2)]

    def wait_until_ready(self) -> None:
        for server in self.servers:
            read_line(server.process)

    def start_again(self, number: int) -> None:
        self.servers[number] = ServerProcess(self._models, *FLAGS, port=self.servers[number].port)

    def restart(self, number: int) -> None:
        """Restart a server as operators do: signal it to stop, wait for the end, start a new process that is ready."""
        self.servers[number].signal(signal.SIGTERM)
        assert self.servers[number].wait() == (0, "", "")
        self.start_again(number)

    def kill(self, number: int) -> None:
        self.servers[number].kill()

    def num_translated(self) -> list[float]:
        """Return the number of calls that each server has answered since it started."""
        return [sum(samples(server.get("/metrics")[2], TRANSLATED)) for server in self.servers]

    def num_sequences(self) -> list[float]:
        """Return the number of segments waiting or being decoded at each server."""
        gauges = ("dragoman_queue_sequences", "dragoman_sequences_running")
        pages = [server.get("/metrics")[2] for server in self.servers]
        return [sum(value for gauge in gauges for value in samples(page, gauge)) for page in pages]


@pytest.fixture(scope="module")
def replicas(tiny_models: Path) -> Iterator[Replicas]:
    pair = Replicas(tiny_models)
    try:
        pair.wait_until_ready()
        yield pair
    finally:
        for number in range(2):
            pair.kill(number)


@pytest.fixture(scope="module")
def addresses(replicas: Replicas, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the addresses to call, for each way of balancing."""
    ports = [server.port for server in replicas.servers]
    with ExitStack() as stack:
        yield {
            "round_robin": ",".join(server.address for server in replicas.servers),
            "nginx": stack.enter_context(nginx(tmp_path_factory.mktemp("nginx"), ports)),
            "envoy": stack.enter_context(envoy(tmp_path_factory.mktemp("envoy"), ports)),
        }


def translate_one(client: Client) -> None:
    client.translate(distinct_texts(1), "en", "de", options=SHORT)


@contextmanager
def busy(addresses: dict[str, str]) -> Iterator[Callers]:
    """Have two callers for each way of balancing, with the documented client, which have their first answers."""
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(address)) for address in addresses.values()]
        calls = [partial(translate_one, client) for client in clients for _ in range(2)]
        callers = stack.enter_context(Callers(*calls, pause_seconds=0.1))
        callers.wait_for_more()
        yield callers


@contextmanager
def documented(address: str) -> Iterator[Any]:
    """Connect as the documented client does; the stub gives access to what `Client` hides."""
    to = target_of(address)
    with grpc.insecure_channel(to.target, to.options) as channel:
        yield pb_grpc.TranslationServiceStub(channel)


@contextmanager
def plain(address: str) -> Iterator[Any]:
    """Connect by round robin without the other settings that deploy/client documents: no retries, no health checks."""
    service_config = ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}')
    options = [("grpc.enable_retries", 0), service_config, ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(target_of(address).target, options) as channel:
        yield pb_grpc.TranslationServiceStub(channel)


@pytest.mark.parametrize("way", WAYS)
def test_each_server_gets_about_half_of_the_calls(way: str, replicas: Replicas, addresses: dict[str, str]) -> None:
    before = replicas.num_translated()
    with Client(addresses[way]) as client:
        for text in distinct_texts(40):
            client.translate([text], "en", "de", options=SHORT)
    shares = [after - earlier for after, earlier in zip(replicas.num_translated(), before, strict=True)]
    assert sum(shares) == 40
    assert min(shares) >= 12


@pytest.mark.parametrize("way", WAYS)
def test_request_ids_pass_both_ways(way: str, addresses: dict[str, str]) -> None:
    with documented(addresses[way]) as stub:
        request = request_of(["Hello"])
        _, call = stub.Translate.with_call(request, timeout=patient(30), metadata=[("x-request-id", f"mine-{way}")])
        assert trailer(call, "x-request-id") == f"mine-{way}"
        _, call = stub.Translate.with_call(request, timeout=patient(30))
        assert len(trailer(call, "x-request-id")) == 16  # the server's own, not the proxy's


@pytest.mark.parametrize("way", WAYS)
def test_big_calls_and_much_metadata_pass(way: str, addresses: dict[str, str]) -> None:
    texts = ["1" * 900] * 1000  # no letters, so nothing to decode
    with documented(addresses[way]) as stub:
        call = partial(stub.Translate, request_of(texts), timeout=patient(30), metadata=[("x-note", "n" * 7000)])
        try:
            response = call()
        except grpc.RpcError as error:
            # gRPC's server may close a connection of full age before the end of a long answer has arrived: seen once.
            if "max_age" not in str(error):
                raise
            response = call()
    assert [translation.text for translation in response.translations] == texts


@pytest.mark.parametrize("way", WAYS)
def test_streams_come_in_parts_and_end_when_the_caller_goes(
    way: str, replicas: Replicas, addresses: dict[str, str]
) -> None:
    texts = [" ".join(f"{text}." for text in distinct_texts(1000))]
    with documented(addresses[way]) as stub:
        stream = stub.TranslateStream(request_of(texts), timeout=patient(60))
        for _ in range(3):
            assert next(stream).delta
        assert sum(replicas.num_sequences()) > 0  # still running: the answers so far were not held back until the end
        stream.cancel()
        eventually(lambda: sum(replicas.num_sequences()) == 0)


def test_a_restart_and_a_kill_lose_no_call_of_the_documented_client_but_one_of_others(
    replicas: Replicas, addresses: dict[str, str]
) -> None:
    with busy(addresses) as callers, plain(addresses["round_robin"]) as stub:
        replicas.restart(0)
        callers.wait_for_more()
        eventually(lambda: replicas.num_translated()[0] > 0)
        with Callers(lambda: stub.Translate(request_of(distinct_texts(NUM_LONG)), timeout=patient(30))) as lost:
            eventually(lambda: replicas.num_sequences()[1] > NUM_LONG // 2)  # more than all others send in total
            replicas.kill(1)
            eventually(lambda: bool(lost.failures))
        callers.wait_for_more()
        replicas.start_again(1)
        callers.wait_for_more()
        assert "UNAVAILABLE" in repr(lost.failures)
        assert callers.failures == []


@pytest.mark.full
def test_a_server_that_answers_no_more_loses_none_and_is_left_alone(
    replicas: Replicas, addresses: dict[str, str]
) -> None:
    with busy({"round_robin": addresses["round_robin"]}) as callers:
        replicas.servers[0].signal(signal.SIGSTOP)  # its host keeps running, and so do its connections
        try:
            callers.wait_for_more(20)  # by then, pings have gone unanswered
        finally:
            replicas.servers[0].signal(signal.SIGCONT)
        assert callers.failures == []


def trailer(call: Any, key: str) -> Any:
    return dict(call.trailing_metadata())[key]


def unit_variables(number: int) -> dict[str, str]:
    """Return what the template unit of systemd sets for this server."""
    unit = UNIT.read_text(encoding="utf-8").replace("%i", str(number))
    return dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.MULTILINE))


def num_answered(server: ServerProcess, method: str) -> float:
    answered = rf'dragoman_requests_total{{code="OK",kind="translate",method="{method}"}}'
    return sum(samples(server.get("/metrics")[2], answered))


def test_the_servers_of_the_template_unit_have_ports_of_their_own_for_operators(tiny_models: Path) -> None:
    command = re.search(r"^ExecStart=\S+/dragoman serve (.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    assert command is not None
    assert command[1].startswith("--config ")
    variables: list[Any] = [unit_variables(number) for number in (1, 2)]
    shown = [dragoman_here("config", "--models", str(tiny_models), **each) for each in variables]
    assert [(run.returncode, b"reuse_port = true" in run.stdout) for run in shown] == [(0, True)] * 2
    ports = [set(re.findall(rb"(?:metrics|admin)_port = (\d+)", run.stdout)) for run in shown]
    assert len(ports[0] | ports[1]) == 4


def test_two_servers_on_one_port_share_its_calls_and_a_restart_loses_none(tiny_models: Path) -> None:
    port, http_port = free_port(), free_port()

    def start(number: int) -> ServerProcess:
        ports = ("--http-port", str(http_port))
        return ServerProcess(tiny_models, *FLAGS, *ports, port=port, variables=unit_variables(number))

    def translate() -> None:
        with Client(f"127.0.0.1:{port}") as client:  # a connection, which either server takes
            translate_one(client)

    def translate_over_http() -> None:
        asked = {"source_language_code": "en", "target_language_code": "de", "text": "Hello"}
        assert call(f"http://127.0.0.1:{http_port}", "POST", "/v1/translate", asked).status == 200

    def share(servers: Sequence[ServerProcess], method: str, caller: Callers) -> None:
        eventually(lambda: bool(caller.failures) or all(num_answered(each, method) >= 2 for each in servers))
        assert caller.failures == []

    with start(1) as first, start(2) as second, Callers(translate, pause_seconds=0.02) as caller:
        check_taken(port)
        with Callers(translate_over_http, pause_seconds=0.02) as over_http:  # it ends before the restart: it tries once
            share((first, second), "http/v1/translate", over_http)
        share((first, second), "dragoman.v1.TranslationService/Translate", caller)
        first.signal(signal.SIGTERM)
        assert first.wait() == (0, "", "")
        with start(1) as third:
            share((second, third), "dragoman.v1.TranslationService/Translate", caller)
        assert caller.failures == []


def test_a_port_is_taken_unless_both_servers_share_it(replicas: Replicas) -> None:
    check_taken(replicas.servers[0].port, "--reuse-port")


def check_taken(port: int, *flags: str) -> None:
    run = dragoman("serve", "--metrics-port", "0", "--admin-port", "-1", "--port", str(port), *flags)
    assert run.returncode == 71
    (line,) = run.stderr.decode().splitlines()
    assert line.startswith(f"dragoman: can't listen on 127.0.0.1:{port} for gRPC: Address already in use.")
