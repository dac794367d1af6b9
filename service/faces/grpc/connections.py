"""gRPC's options for connections: their number, limits and timeouts."""

import resource

HANDSHAKE_SECONDS = 20.0  # for TLS and the first frames
# A vanished caller is noticed after the sum of these two.
KEEPALIVE_SECONDS = 30.0
PING_TIMEOUT_SECONDS = 10.0
MIN_PING_INTERVAL_SECONDS = 10.0  # clients may keep connections alive by pinging this often
# Further calls wait on the caller's side. Without a limit, a flood of calls begun and cancelled delays all others.
MAX_CALLS = 1000

# Bytes of a message that are received before it is read: gRPC's window for each call.
UNREAD_BYTES = 16 * 2**10

# Descriptors for everything but gRPC's connections: both HTTP ports, and files of models, certificates and keys.
_RESERVED_DESCRIPTORS = 256


def connection_options(max_connections: int) -> list[tuple[str, int]]:
    """Return options for `grpc.aio.server`; few file descriptors lower the limit below `max_connections`."""
    return [
        ("grpc.max_allowed_incoming_connections", min(max_connections, _affordable_connections())),
        ("grpc.max_concurrent_streams", MAX_CALLS),
        ("grpc.http2.lookahead_bytes", UNREAD_BYTES),
        ("grpc.http2.bdp_probe", 0),  # on fast networks it would let windows grow to megabytes
        ("grpc.server_handshake_timeout_ms", round(HANDSHAKE_SECONDS * 1000)),
        ("grpc.keepalive_time_ms", round(KEEPALIVE_SECONDS * 1000)),
        ("grpc.keepalive_timeout_ms", round(PING_TIMEOUT_SECONDS * 1000)),
        (
            "grpc.http2.ping_timeout_ms",
            round(PING_TIMEOUT_SECONDS * 1000),
        ),  # for all other pings, which delay those of keepalive
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", round(MIN_PING_INTERVAL_SECONDS * 1000)),
    ]


def _affordable_connections() -> int:
    """Return how many connections the limit on open files (`ulimit -n`) allows."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(limit - _RESERVED_DESCRIPTORS, limit // 2, 1)
