"""Hosts of callers, as far as they can be told apart."""

import socket

_MAPPED = bytes(10) + b"\xff\xff"  # IPv4 addresses on a dual-stack socket


def host_of(address: str) -> str:
    """Return the host that has an IP address; anything else is returned as it is.

    For IPv6 it is the /64 network, within which a host may choose its addresses.
    """
    if ":" not in address:
        return address
    try:
        packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    except (OSError, ValueError):
        return address
    if packed.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[len(_MAPPED) :])
    return socket.inet_ntop(socket.AF_INET6, packed[:8] + bytes(8))
