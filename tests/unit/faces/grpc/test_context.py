"""Hosts in gRPC's names of connections."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.faces.grpc.context import host_of


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:192.0.2.1:5000", "192.0.2.1"),
        ("ipv6:[::1]:5000", "::"),
        ("ipv6:%5B::1%5D:5000", "::"),
        ("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:5000", "2001:db8:1:2::"),
        ("ipv6:%5Bfe80::1%25eth0%5D:5000", "fe80::"),
        ("ipv6:%5B::ffff:192.0.2.1%5D:5000", "192.0.2.1"),
        ("ipv6:%5Bno address%5D:5000", "no address"),
        ("unix:", "unix"),
        ("unix:/run/dragoman.sock", "unix"),
        ("", ""),
    ],
)
def test_the_host_is_what_connections_have_in_common(peer: str, host: str) -> None:
    assert host_of(peer) == host


@given(st.ip_addresses(v=4), st.ip_addresses(v=6), st.integers(1, 65535))
@settings(derandomize=True, deadline=None)
def test_neither_ports_matter_nor_what_a_host_may_choose(v4: IPv4Address, v6: IPv6Address, port: int) -> None:
    assert host_of(f"ipv4:{v4}:{port}") == host_of(f"ipv4:{v4}:1") == str(v4)
    sibling = IPv6Address(int(v6) ^ 1)
    assert (host_of(f"ipv6:%5B{v6}%5D:{port}") == host_of(f"ipv6:%5B{sibling}%5D:1")) == (v6.ipv4_mapped is None)


@given(st.text(max_size=80))
@settings(derandomize=True, deadline=None)
def test_any_name_is_some_host(peer: str) -> None:
    host_of(peer)
    host_of(f"ipv6:{peer}")
