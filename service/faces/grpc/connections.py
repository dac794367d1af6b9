"""How many connections there may be, what one may do, and when it is given up: gRPC's options for it."""

import resource

HANDSHAKE_SECONDS = 20.0  # for TLS and the first frames
# A caller that vanished is noticed in the sum of these.
KEEPALIVE_SECONDS = 30.0
PING_TIMEOUT_SECONDS = 10.0
MIN_PING_INTERVAL_SECONDS = 10.0  # clients may keep connections alive by pinging this often
# More wait with the caller. Without a bound a flood of calls, begun and cancelled, holds up everybody else's.
MAX_CALLS = 1000

# Of a message that nobody has asked for yet, so much is taken in: gRPC's window for each call.
UNREAD_BYTES = 16 * 2**10

# Descriptors for all but gRPC's connections: both HTTP ports, and the files of models, certificates and keys.
_RESERVED_DESCRIPTORS = 256


def connection_options(max_connections: int) -> list[tuple[str, int]]:
    """Options for `grpc.aio.server`; with few descriptors there are fewer connections than `max_connections`."""
    return [
        ("grpc.max_allowed_incoming_connections", min(max_connections, _affordable_connections())),
        ("grpc.max_concurrent_streams", MAX_CALLS),
        ("grpc.http2.lookahead_bytes", UNREAD_BYTES),
        ("grpc.http2.bdp_probe", 0),  # for fast networks it would let windows grow to megabytes
        ("grpc.server_handshake_timeout_ms", round(HANDSHAKE_SECONDS * 1000)),
        ("grpc.keepalive_time_ms", round(KEEPALIVE_SECONDS * 1000)),
        ("grpc.keepalive_timeout_ms", round(PING_TIMEOUT_SECONDS * 1000)),
        (
            "grpc.http2.ping_timeout_ms",
            round(PING_TIMEOUT_SECONDS * 1000),
        ),  # of all other pings, which hold keepalive's off
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", round(MIN_PING_INTERVAL_SECONDS * 1000)),
    ]


def _affordable_connections() -> int:
    """How many the limit of open files leaves room for (`ulimit -n`)."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(limit - _RESERVED_DESCRIPTORS, limit // 2, 1)
