"""Ports."""

import socket

import pytest

from service.process.ports import PortError, check_port, join_address, reserve_port


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


def test_a_reserved_port_is_shared_by_those_that_ask_for_it_only() -> None:
    with reserve_port("127.0.0.1", 0, "gRPC", "--port") as reserved:
        address = reserved.getsockname()
        with socket.socket() as first, socket.socket() as second, socket.socket() as stranger:
            for each in (first, second):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                each.bind(address)
                each.listen()
            with pytest.raises(OSError, match="in use"):
                stranger.bind(address)
            with pytest.raises(PortError, match="in use"):
                reserve_port(address[0], address[1], "gRPC", "--port")
