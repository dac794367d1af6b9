"""What gRPC tells of a call's caller: the host, and the deadline."""

import socket
import time
from typing import Any
from urllib.parse import unquote

import grpc

_MAPPED = bytes(10) + b"\xff\xff"  # IPv4 addresses on a dual-stack socket


def host_of(peer: str) -> str:
    """Return the host of a gRPC peer, such as `ipv4:192.0.2.1:5000`, `ipv6:%5B2001:db8::1%5D:5000` or `unix:`.

    For IPv6 it is the /64 network, within which a host may choose its addresses. All Unix sockets count as one host.
    """
    kind, _, address = peer.partition(":")
    host = address.rpartition(":")[0]
    if kind != "ipv6":
        return host if kind == "ipv4" else kind
    try:
        packed = socket.inet_pton(socket.AF_INET6, unquote(host).strip("[]").partition("%")[0])
    except (OSError, ValueError):
        return host
    if packed.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[len(_MAPPED) :])
    return socket.inet_ntop(socket.AF_INET6, packed[:8] + bytes(8))


def deadline_of(context: "grpc.aio.ServicerContext[Any, Any]", default_seconds: float) -> float:
    """Return the caller's deadline, or else the default one, on the clock of `time.monotonic()`."""
    remaining = context.time_remaining()
    return time.monotonic() + (default_seconds if remaining is None else remaining)
