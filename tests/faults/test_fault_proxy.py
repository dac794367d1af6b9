"""The proxy works as documented; otherwise tests that use it would prove nothing."""

import errno
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.faults.fault_proxy import BLACK_HOLE, PASS, Fault, FaultProxy
from tests.servers import TIMEOUT_SECONDS, LoopThread, eventually


@pytest.fixture
def echo() -> Iterator[socket.socket]:
    """Yield a server that echoes what it gets, and the sockets that it has accepted."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                while received := connection.recv(65_536):
                    connection.sendall(received)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield listener
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(TIMEOUT_SECONDS)


@pytest.fixture
def proxy(loop_thread: LoopThread, echo: socket.socket) -> Iterator[FaultProxy]:
    with FaultProxy(loop_thread, echo.getsockname()[1]) as running:
        yield running


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", proxy.port), TIMEOUT_SECONDS) as connection:
        assert echoed(connection, b"first") == b"first"
        yield connection


def echoed(client: socket.socket, content: bytes) -> bytes:
    client.sendall(content)
    return received(client, len(content))


def received(client: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size and (chunk := client.recv(65_536)):
        content += chunk
    return content


def hears_nothing(client: socket.socket) -> bool:
    client.settimeout(0.3)
    try:
        client.recv(1)
    except TimeoutError:
        client.settimeout(TIMEOUT_SECONDS)
        return True
    return False


def test_bytes_and_ends_pass(client: socket.socket, proxy: FaultProxy) -> None:
    assert echoed(client, b"x" * 1_000_000) == b"x" * 1_000_000
    client.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b""
    eventually(lambda: proxy.num_connections == 0)


def test_delay(client: socket.socket, proxy: FaultProxy) -> None:
    proxy.meet(Fault(delay_seconds=0.1))
    began = time.monotonic()
    assert echoed(client, b"late") == b"late"
    assert time.monotonic() - began >= 0.2
    proxy.meet(PASS)
    began = time.monotonic()
    assert echoed(client, b"soon") == b"soon"
    assert time.monotonic() - began < 0.2


def test_throttle(client: socket.socket, proxy: FaultProxy) -> None:
    proxy.meet(Fault(bytes_per_second=10_000))
    began = time.monotonic()
    assert len(echoed(client, b"x" * 5_000)) == 5_000
    assert 0.4 < time.monotonic() - began < 5


def test_reset(client: socket.socket, proxy: FaultProxy) -> None:
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    eventually(lambda: proxy.num_connections == 0)


def test_black_hole(client: socket.socket, proxy: FaultProxy) -> None:
    for fault in (BLACK_HOLE, Fault(swallows_requests=True), Fault(swallows_answers=True)):
        proxy.meet(fault)
        client.sendall(b"lost")
        assert hears_nothing(client)
    proxy.meet(PASS)
    assert echoed(client, b"x") == b"x"  # what was swallowed is lost for good


def test_lost_clients(client: socket.socket, proxy: FaultProxy) -> None:
    proxy.lose_clients()
    client.sendall(b"lost")
    assert hears_nothing(client)
    client.close()
    with socket.create_connection(("127.0.0.1", proxy.port), TIMEOUT_SECONDS) as other:
        assert echoed(other, b"hello") == b"hello"
    eventually(lambda: proxy.num_connections == 1)  # the server's side of the first is still open


def test_refuse(client: socket.socket, proxy: FaultProxy) -> None:
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", proxy.port), TIMEOUT_SECONDS)
    assert echoed(client, b"still here") == b"still here"
    proxy.accept()
    with socket.create_connection(("127.0.0.1", proxy.port), TIMEOUT_SECONDS) as other:
        assert echoed(other, b"hello") == b"hello"


def test_cut(loop_thread: LoopThread, echo: socket.socket) -> None:
    with FaultProxy(loop_thread, echo.getsockname()[1], Fault(cut_after_bytes=3)) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), TIMEOUT_SECONDS) as client:
            client.sendall(b"abcdef")
            assert until_reset(client) in (b"abc", b"")  # a reset may overtake the data before it
        eventually(lambda: proxy.num_connections == 0)


def test_an_upstream_that_is_gone(loop_thread: LoopThread) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with FaultProxy(loop_thread, port) as proxy, socket.socket() as client:
        client.settimeout(TIMEOUT_SECONDS)
        is_reset = client.connect_ex(("127.0.0.1", proxy.port)) == errno.ECONNRESET  # sometimes that early
        assert is_reset or until_reset(client) == b""


def until_reset(client: socket.socket) -> bytes:
    content = b""
    try:
        while chunk := client.recv(65_536):
            content += chunk
    except OSError:
        return content
    raise AssertionError("an orderly end, no reset")
