"""Checks that a port can be listened on before anything depends on it, and how many connections it can have."""

import resource
import socket


class PortError(Exception):
    """A port can't be listened on; the message names it, the reason and the remedy."""


def check_port(host: str, port: int, purpose: str, flag: str, *, is_shared: bool = False) -> None:
    """Ensure that `host:port` is free or `is_shared`; the error is one line, where gRPC logs several."""
    try:
        with _bound(host, port, is_shared=is_shared) as probe:
            if not is_shared:  # else the kernel would give it connections
                probe.listen(1)
    except OSError as error:
        raise port_error(host, port, purpose, flag, error) from error


def bound_port(host: str, port: int, purpose: str, flag: str, *, is_shared: bool = False) -> socket.socket:
    """Return a bound socket; one that `is_shared` joins those of other servers of this user that share theirs."""
    check_port(host, port, purpose, flag, is_shared=is_shared)
    try:
        return _bound(host, port, is_shared=is_shared)
    except OSError as error:
        raise port_error(host, port, purpose, flag, error) from error


def _bound(host: str, port: int, *, is_shared: bool) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port in TIME_WAIT is free
        if is_shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def port_error(host: str, port: int, purpose: str, flag: str, error: OSError) -> PortError:
    return PortError(
        f"can't listen on {join_address(host, port)} for {purpose}: {error.strerror}. Stop the process "
        f"that uses it, or choose another port with {flag}."
    )


def join_address(host: str, port: int) -> str:
    """Return `host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def affordable_connections(most: int, num_ports: int = 1) -> int:
    """Return how many connections each of `num_ports` ports may have: `most`, or what `ulimit -n` allows."""
    limit = max_descriptors()
    # For everything else: both HTTP ports of operators, and files of models, certificates and keys.
    reserved = 256
    return max(min(most, max(limit - reserved, limit // 2) // num_ports), 1)


def max_descriptors() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
