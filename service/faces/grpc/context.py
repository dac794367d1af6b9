"""What gRPC tells of a call's caller: the host, and the deadline."""

import time
from typing import Any
from urllib.parse import unquote

import grpc

from service.calls import hosts


def host_of(peer: str) -> str:
    """Return the host of a gRPC peer, such as `ipv4:192.0.2.1:5000`, `ipv6:%5B2001:db8::1%5D:5000` or `unix:`.

    All Unix sockets count as one host.
    """
    kind, _, address = peer.partition(":")
    host = address.rpartition(":")[0]
    if kind != "ipv6":
        return host if kind == "ipv4" else kind
    return hosts.host_of(unquote(host).strip("[]"))


def deadline_of(context: "grpc.aio.ServicerContext[Any, Any]", default_seconds: float) -> float:
    """Return the caller's deadline, or else the default one, on the clock of `time.monotonic()`."""
    remaining = context.time_remaining()
    return time.monotonic() + (default_seconds if remaining is None else remaining)
