"""Ports, and how many connections few file descriptors allow."""

import resource
import socket

import pytest

from service.process.ports import PortError, affordable_connections, bound_port, check_port, join_address


def test_a_taken_port_is_refused_and_a_free_one_is_not() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(PortError, match=rf"can't listen on 127\.0\.0\.1:{port} for gRPC: .* --port\."):
            check_port("127.0.0.1", port, "gRPC", "--port")
    check_port("127.0.0.1", port, "gRPC", "--port")


def test_a_foreign_address_or_unknown_host_is_refused() -> None:
    for host in ("192.0.2.1", "no-such-host.invalid"):
        with pytest.raises(PortError, match=host):
            check_port(host, 0, "metrics", "--metrics-port")


def test_ipv6_addresses_get_brackets() -> None:
    assert join_address("::1", 80) == "[::1]:80"
    assert join_address("localhost", 80) == "localhost:80"


def test_a_port_is_shared_by_those_that_all_ask_for_it() -> None:
    def bound(port: int, *, is_shared: bool = True) -> socket.socket:
        return bound_port("127.0.0.1", port, "calls over HTTP", "--http-port", is_shared=is_shared)

    with bound(0) as first:
        port = first.getsockname()[1]
        first.listen()
        with bound(port) as second:
            second.listen()
        with pytest.raises(PortError, match=r"in use.* --http-port\."):
            bound(port, is_shared=False)
    with bound(0, is_shared=False) as alone:
        alone.listen()
        with pytest.raises(PortError, match="in use"):
            bound(alone.getsockname()[1])


@pytest.mark.parametrize(("limit", "expected"), [(1024, 768), (300, 150), (1, 1), (2**20, 10_000)])
def test_few_open_files_reduce_connections(limit: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert affordable_connections(10_000) == expected


def test_two_ports_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    assert affordable_connections(10_000, num_ports=2) == 384
    assert affordable_connections(100, num_ports=2) == 100
