"""Callers and networks that misbehave: each is removed in time, no other is disturbed, nothing is left behind."""

import contextlib
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import psutil
import pytest
from hyperframe.frame import ContinuationFrame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

from benchmarks import http2_frames as http2
from dragoman_client import Client, ClientError, targets
from service.faces.grpc import server as grpc_server
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.http import connection as http_connection
from service.faces.http.open_connections import MAX_CONNECTIONS
from tests.callers import Callers
from tests.faults.fault_proxy import Fault, FaultProxy
from tests.faults.raw_connection import METHOD, RawConnection
from tests.grpc_calls import refused, request_of, stub_of
from tests.patience import patient
from tests.servers import (
    InProcessServer,
    LoopThread,
    Serve,
    distinct_texts,
    eventually,
    http_get,
    rpc_error,
)

NAME = "dragoman.v1.TranslationService"
SHORT = request_of(["Hello"]).SerializeToString()
KEEPALIVE_SECONDS, PING_TIMEOUT_SECONDS, HANDSHAKE_SECONDS = 1.0, 1.0, 1.5  # here; 30, 10 and 20 in production
PATIENCE_SECONDS = 2.0  # the default deadline
# A small call is answered within this time whatever else happens, even on a busy machine; an idle server takes 10 ms.
HEALTHY_SECONDS = patient(10.0)
SLACK_SECONDS = patient(5.0)  # for two busy cores
THREAD_SECONDS = 40.0  # of gRPC's pool, which ends threads that had nothing to do for 20 s


@pytest.fixture(scope="module")
def server(share: Serve) -> Iterator[InProcessServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grpc_server, "KEEPALIVE_SECONDS", KEEPALIVE_SECONDS)
        patch.setattr(grpc_server, "PING_TIMEOUT_SECONDS", PING_TIMEOUT_SECONDS)
        patch.setattr(grpc_server, "HANDSHAKE_SECONDS", HANDSHAKE_SECONDS)
        patch.setattr(grpc_server, "MIN_PING_INTERVAL_SECONDS", 0.5)
        patch.setattr(http_connection, "READ_SECONDS", 1.0)
        yield share(max_slots=2, default_deadline_seconds=PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def proxies() -> Iterator[LoopThread]:
    """Yield an event loop that is not the server's."""
    thread = LoopThread()
    yield thread
    thread.close()


@pytest.fixture
def proxy(proxies: LoopThread, server: InProcessServer) -> Iterator[FaultProxy]:
    with FaultProxy(proxies, server.server.port) as running:
        yield running


class Caller:
    """A healthy caller on its own connection; `worst_seconds` is its slowest call."""

    def __init__(self, client: Client) -> None:
        self.worst_seconds = 0.0
        self._client = client

    def __call__(self) -> None:
        began = time.monotonic()
        assert self._client.translate(["Hello"], "en", "de")[0].text
        self.worst_seconds = max(self.worst_seconds, time.monotonic() - began)


@pytest.fixture(autouse=True)
def healthy(server: InProcessServer) -> Iterator[Caller]:
    """Yield a caller that must be answered in time during the test; then check that the server is as before."""
    with server.client() as client:
        client.translate(["Hello"], "en", "de")
    eventually(lambda: is_idle(server))
    before = left_in(server)
    with server.client(timeout_seconds=patient(30.0)) as client:
        caller = Caller(client)
        with Callers(caller, pause_seconds=0.05) as calls:
            calls.wait_for_more(1)
            yield caller
            calls.wait_for_more(1)
    assert not calls.failures
    assert caller.worst_seconds < HEALTHY_SECONDS
    eventually(lambda: is_idle(server), SLACK_SECONDS)
    with contextlib.suppress(AssertionError):  # the next line shows what is left
        eventually(lambda: no_more(left_in(server), before), THREAD_SECONDS)
    assert no_more(left_in(server), before)


def is_idle(server: InProcessServer) -> bool:
    """Return whether nobody waits, and no call counts."""
    return server.is_idle() and inflight(server) == 0


def left_in(server: InProcessServer) -> dict[str, int]:
    process = psutil.Process()
    return {"tasks": server.num_tasks(), "descriptors": process.num_fds(), "threads": process.num_threads()}


def no_more(now: dict[str, int], before: dict[str, int]) -> bool:
    # gRPC has a thread pool for clients and servers, which grows and shrinks by itself, and keeps a few pipes.
    slack = {"tasks": 0, "descriptors": 6, "threads": 8}
    return all(now[each] <= before[each] + slack[each] for each in before)


def long_request(num_texts: int = 300) -> Any:
    return request_of(distinct_texts(num_texts))


def inflight(server: InProcessServer) -> float:
    return server.metric("dragoman_inflight_requests")


@pytest.mark.parametrize("method", ["Translate", "TranslateStream"])
def test_callers_that_never_read(server: InProcessServer, method: str) -> None:
    """They answer pings and set no deadline; the default one ends their calls."""
    started = server.metric("dragoman_request_duration_seconds_count", method=f"{NAME}/{method}", code="CANCELLED")
    with RawConnection(server.server.port, {SettingsFrame.INITIAL_WINDOW_SIZE: 0}) as raw:
        raw.greeted()
        for stream in range(1, 20, 2):
            raw.send(http2.call(stream, METHOD + method) + http2.message(stream, SHORT))
        if method == "TranslateStream":
            eventually(lambda: inflight(server) >= 10)  # otherwise this test proves nothing
        seconds = answer_pings(raw, until=lambda: inflight(server) <= 1)  # the healthy caller's
        assert seconds < PATIENCE_SECONDS + SLACK_SECONDS
    if method == "TranslateStream":
        gone = server.metric("dragoman_request_duration_seconds_count", method=f"{NAME}/{method}", code="CANCELLED")
        assert gone - started == 10


def answer_pings(raw: RawConnection, until: Callable[[], bool], limit_seconds: float = 30.0) -> float:
    """Act as a living peer that does nothing else; return the seconds that it took."""
    began = time.monotonic()
    while not until():
        assert time.monotonic() - began < limit_seconds
        try:
            for found in raw.frames(0.1):
                if isinstance(found, PingFrame) and "ACK" not in found.flags:
                    raw.send(http2.ping_ack(found))
        except TimeoutError:
            pass
    return time.monotonic() - began


def test_who_goes_while_an_answer_is_sent_is_no_error_of_ours(
    server: InProcessServer, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = server.num_tasks()
    with RawConnection(server.server.port, {SettingsFrame.INITIAL_WINDOW_SIZE: 0}) as raw:
        raw.greeted()
        for stream, method in ((1, "Translate"), (3, "TranslateStream"), (5, "Translate"), (7, "TranslateStream")):
            deadline = {"grpc-timeout": "500m"} if stream < 5 else {}
            raw.send(http2.call(stream, METHOD + method, deadline) + http2.message(stream, SHORT))
        eventually(lambda: inflight(server) >= 2)
        answer_pings(raw, until=lambda: server.num_tasks() <= tasks + 6)  # those with a deadline are over
    eventually(lambda: server.num_tasks() <= tasks + 2)
    assert [record.getMessage() for record in caplog.records if record.name != "asyncio"] == []
    assert server.metric("dragoman_requests_total", method=f"{NAME}/TranslateStream", code="INTERNAL") == 0


def test_callers_that_never_send(server: InProcessServer) -> None:
    """Calls without a message, or with half of one: they do not count as calls yet, and end with their connection."""
    tasks = server.num_tasks()
    with RawConnection(server.server.port) as raw:
        raw.greeted()
        half = http2.data(1, b"\0\0\0\1\0half")
        raw.send(http2.call(1, METHOD + "Translate") + half)
        for stream in range(3, 40, 2):
            raw.send(http2.call(stream, METHOD + "Translate"))
        eventually(lambda: server.num_tasks() >= tasks + 19)
        assert inflight(server) <= 1


def test_connections_that_never_begin(server: InProcessServer) -> None:
    sent = (b"", b"PRI", http2.PREFACE, b"\x16\x03\x01")
    with ExitStack() as stack:
        began = time.monotonic()
        for content in sent:
            silent = socket.create_connection(("127.0.0.1", server.server.port), patient(30))
            stack.enter_context(silent).sendall(content)
            stack.callback(until_closed, silent)
    assert time.monotonic() - began < HANDSHAKE_SECONDS + SLACK_SECONDS


def until_closed(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass


def test_clients_that_vanish(server: InProcessServer) -> None:
    """No FIN, no reset, no answer to pings: keepalive closes the connection, whatever is in progress on it."""
    with RawConnection(server.server.port) as idle, RawConnection(server.server.port) as calling:
        began = time.monotonic()
        for raw in (idle, calling):
            raw.greeted()
        calling.send(http2.call(1, "/grpc.health.v1.Health/Watch") + http2.message(1, b""))
        for raw in (idle, calling):
            assert raw.until(GoAwayFrame).additional_data == b"ping_timeout"
        seconds = time.monotonic() - began
        assert seconds < KEEPALIVE_SECONDS + PING_TIMEOUT_SECONDS + SLACK_SECONDS


def test_calls_of_clients_that_vanish(server: InProcessServer, proxy: FaultProxy) -> None:
    engine = server.server.models[0].engine
    with stub_of(proxy.address) as stub:
        calls = [
            stub.Translate.future(long_request(500), timeout=6000),
            stub.TranslateStream(long_request(), timeout=6000),
        ]
        eventually(lambda: engine.snapshot().num_waiting > 300)
        began = time.monotonic()
        proxy.lose_clients()
        eventually(lambda: engine.snapshot().num_waiting == 0)
        seconds = time.monotonic() - began
        assert seconds < KEEPALIVE_SECONDS + PING_TIMEOUT_SECONDS + SLACK_SECONDS
        eventually(lambda: server.metric("dragoman_sentences_total", model="tiny", outcome="cancelled") > 100)
        for call in calls:
            call.cancel()


def test_resets_in_the_middle_of_calls(server: InProcessServer, proxy: FaultProxy) -> None:
    engine = server.server.models[0].engine
    rounds = 2
    for _ in range(rounds):
        with stub_of(proxy.address) as stub:
            calls = [stub.Translate.future(long_request(250), timeout=6000) for _ in range(2)]
            streams = [stub.TranslateStream(long_request(250), timeout=6000) for _ in range(2)]
            eventually(lambda: inflight(server) >= 4)
            assert next(streams[0]).delta
            proxy.reset()
            for call in (*calls, *streams):
                with pytest.raises(grpc.RpcError) as raised:
                    call.result(timeout=patient(30)) if call in calls else list(call)
                assert rpc_error(raised).code() is grpc.StatusCode.UNAVAILABLE
            eventually(lambda: engine.snapshot().num_waiting == 0, SLACK_SECONDS)


def test_answers_that_are_cut_short(
    server: InProcessServer, proxies: LoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection ends after so many bytes of the server's; this is not an error of ours."""
    cases = range(0, 360, 24)
    for num_bytes in cases:
        with FaultProxy(proxies, server.server.port) as proxy, stub_of(proxy.address) as stub:
            proxy.fault = Fault(cut_after_bytes=num_bytes)
            request = request_of(["Hello", "file", "train"])
            method = stub.TranslateStream if num_bytes % 48 else stub.Translate
            assert refused(method, request, timeout=patient(10)).code() is grpc.StatusCode.UNAVAILABLE
    assert [record.getMessage() for record in caplog.records if record.name != "asyncio"] == []


def test_our_client_gives_up_by_its_deadline_and_recovers(
    server: InProcessServer, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "KEEPALIVE_SECONDS", 1)
    monkeypatch.setattr(targets, "PING_TIMEOUT_SECONDS", 1)
    with Client(proxy.address, timeout_seconds=1.0) as client:
        assert client.translate(["Hello"], "en", "de")
        proxy.lose_clients()
        began = time.monotonic()
        with pytest.raises(ClientError) as raised:
            client.translate(["Hello"], "en", "de")
        assert raised.value.code in ("DEADLINE_EXCEEDED", "UNAVAILABLE")
        assert time.monotonic() - began < 2.0
        eventually(lambda: answers(client))
        seconds = time.monotonic() - began
        assert seconds < 2 + SLACK_SECONDS


def answers(client: Client) -> bool:
    try:
        return bool(client.translate(["Hello"], "en", "de"))
    except ClientError:
        return False


def test_our_client_waits_for_a_port_that_is_closed_for_a_while(server: InProcessServer, proxy: FaultProxy) -> None:
    with Client(proxy.address, timeout_seconds=patient(10.0)) as client:
        assert client.translate(["Hello"], "en", "de")
        proxy.refuse()
        proxy.reset()
        eventually(lambda: not answers(client))
        proxy.accept()
        eventually(lambda: answers(client), SLACK_SECONDS)


def test_a_slow_connection_gets_its_large_answer(server: InProcessServer, proxy: FaultProxy) -> None:
    """Others are served meanwhile, and no more is buffered for it than the proxy lets through."""
    proxy.fault = Fault(bytes_per_second=100_000)
    texts = distinct_texts(20)
    with server.client() as fast, Client(proxy.address) as slow:
        expected = [translation.text for translation in fast.translate(texts, "en", "de")]
        began = time.monotonic()
        got = [""] * len(texts)
        for part in slow.stream(texts, "en", "de"):
            got[part.text_index] += part.delta
        assert time.monotonic() - began > 0.1  # otherwise nothing was slow
    assert got == expected


def churn(server: InProcessServer, num_connections: int) -> None:
    port = server.server.port
    for number in range(num_connections):
        if number % 3:
            with RawConnection(port) as raw:
                if number % 3 == 2:
                    raw.greeted()
        else:
            socket.create_connection(("127.0.0.1", port), patient(30)).close()


def test_connections_that_come_and_go(server: InProcessServer) -> None:
    churn(server, 1000)


def test_pings_without_end(server: InProcessServer) -> None:
    with RawConnection(server.server.port) as raw:
        raw.greeted()
        send_until_closed(raw, b"".join(map(http2.ping, range(100))), 100)
        goodbye = raw.until(GoAwayFrame)
        assert (goodbye.error_code, goodbye.additional_data) == (http2.ENHANCE_YOUR_CALM, b"too_many_pings")


def send_until_closed(raw: RawConnection, content: bytes, times: int) -> None:
    with contextlib.suppress(OSError):
        for _ in range(times):
            raw.send(content)


def test_settings_without_end(server: InProcessServer) -> None:
    with RawConnection(server.server.port) as raw:
        raw.greeted()
        raw.socket.settimeout(1.0)  # the server may stop reading from a client that does not read
        flood = b"".join(http2.settings({SettingsFrame.INITIAL_WINDOW_SIZE: 65_535 + each}) for each in range(100))
        send_until_closed(raw, flood, 100)


def test_a_header_block_without_end(server: InProcessServer) -> None:
    """Endless CONTINUATION frames, each of which enlarges the metadata."""
    memory = psutil.Process().memory_info().rss
    with RawConnection(server.server.port) as raw:
        raw.greeted()
        raw.socket.settimeout(1.0)
        raw.send(HeadersFrame(1, http2.header_block(METHOD + "Translate")).serialize())  # without END_HEADERS
        field = b"\x00\x01a\x7f\x80\x7f" + b"x" * 16_383
        send_until_closed(raw, ContinuationFrame(1, field[:16_384]).serialize(), 2000)
    assert psutil.Process().memory_info().rss - memory < 50 * 2**20


def rapid_resets(server: InProcessServer, num_streams: int, *, with_message: bool) -> None:
    """Begin calls and reset them at once, as in CVE-2023-44487. The server may hang up on such a client."""
    with RawConnection(server.server.port) as raw, contextlib.suppress(ConnectionError):
        raw.greeted()
        for first in range(1, 2 * num_streams, 100):
            raw.send(
                b"".join(
                    http2.call(stream, METHOD + "Translate")
                    + (http2.message(stream, SHORT) if with_message else b"")
                    + http2.reset(stream)
                    for stream in range(first, first + 100, 2)
                )
            )
        raw.send(http2.ping(7))
        while "ACK" not in raw.until(PingFrame).flags:
            pass


@pytest.mark.parametrize("with_message", [False, True])
def test_calls_begun_and_reset_at_once(server: InProcessServer, healthy: Caller, with_message: bool) -> None:
    rapid_resets(server, 5000, with_message=with_message)


def test_a_connection_has_so_many_calls_and_no_more(server: InProcessServer) -> None:
    with RawConnection(server.server.port) as raw:
        assert raw.greeted().settings[SettingsFrame.MAX_CONCURRENT_STREAMS] == grpc_server.MAX_CALLS
        for first in range(1, 2 * grpc_server.MAX_CALLS + 200, 100):
            raw.send(b"".join(http2.call(each, METHOD + "Translate") for each in range(first, first + 100, 2)))
        refused = 0
        for found in raw.frames():
            refused += isinstance(found, RstStreamFrame) and found.error_code == http2.REFUSED_STREAM
            if refused == 100:
                break


def test_metadata_and_messages_that_are_huge(server: InProcessServer) -> None:
    with grpc.insecure_channel(server.address, [("grpc.max_send_message_length", -1)]) as channel:
        stub = pb_grpc.TranslationServiceStub(channel)
        error = refused(stub.ListModels, pb.ListModelsRequest(), metadata=[("x-note", "a" * 1_000_000)])
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        for size in (5 * 2**20, 100 * 2**20):
            error = refused(stub.Translate, request_of(["a" * size]))
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    with RawConnection(server.server.port) as raw:  # a message that only claims to be huge
        raw.greeted()
        raw.send(http2.call(1, METHOD + "Translate") + http2.data(1, b"\0\xff\xff\xff\xff"))
        assert raw.until(HeadersFrame).stream_id == 1  # rejected immediately


def garbage(server: InProcessServer, num_cases: int) -> None:
    chosen = random.Random(7)
    ports = (server.server.port, server.server.metrics_port, server.server.admin_port)
    beginnings = (
        b"",
        http2.PREFACE,
        http2.PREFACE + http2.settings(),
        http2.PREFACE + http2.settings() + http2.call(1, METHOD + "Translate"),
        b"GET /metrics HTTP/1.1\r\n",
        b"POST /api/translate HTTP/1.1\r\nContent-Length: 50\r\n\r\n",
    )
    for number in range(num_cases):
        with socket.create_connection(("127.0.0.1", ports[number % 3]), patient(30)) as client:
            client.sendall(chosen.choice(beginnings) + chosen.randbytes(chosen.choice((1, 9, 40, 500, 20_000))))
            if chosen.random() < 0.5:
                continue
            with contextlib.suppress(OSError):  # it may be closed already
                client.shutdown(socket.SHUT_WR)
                until_closed(client)


def test_bytes_that_mean_nothing(server: InProcessServer) -> None:
    garbage(server, 300)


def test_slow_senders_on_the_http_ports(server: InProcessServer) -> None:
    monitoring, admin = server.server.metrics_port, server.server.admin_port
    slowest = 0.0
    with ExitStack() as stack:
        for port in (monitoring, admin):
            for _ in range(3 * MAX_CONNECTIONS):
                slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), patient(30)))
                slow.sendall(b"GET /readyz HTTP/1.1\r\nX-Word: a")
        for _ in range(10):
            for url in (f"http://127.0.0.1:{monitoring}/readyz", f"http://127.0.0.1:{admin}/status.json"):
                began = time.monotonic()
                assert http_get(url)[0] == 200
                slowest = max(slowest, time.monotonic() - began)
    assert slowest < HEALTHY_SECONDS


@pytest.mark.full
@pytest.mark.timeout(900)
def test_it_all_at_length(server: InProcessServer, healthy: Caller) -> None:
    churn(server, 20_000)
    garbage(server, 20_000)
    for with_message in (False, True):
        rapid_resets(server, 50_000, with_message=with_message)
