"""Builds one gRPC server of the APIs, the call interceptor, health and reflection; limits its connections."""

import logging
from collections.abc import Sequence

import grpc
from grpc_health.v1 import health_pb2_grpc

from service.calls.open_calls import CALL_BYTES, OpenCalls
from service.calls.pipeline import CallPipeline
from service.config.server_config import ServerConfig
from service.faces.grpc import health, reflection
from service.faces.grpc.absent_callers import is_worth_logging
from service.faces.grpc.api import GrpcApi
from service.faces.grpc.calls import CallInterceptor
from service.faces.grpc.health import HealthServicer
from service.faces.grpc.intake import Intake, Memory
from service.process.event_loop import patient_threads

_ALGORITHMS = 1 << grpc.Compression.NoCompression.value  # as bits
_INFLATES = False
GRPC_LOGGER = "grpc._cython.cygrpc"

HANDSHAKE_SECONDS = 20.0  # for TLS and the first frames
# A vanished caller is noticed after the sum of these two.
KEEPALIVE_SECONDS = 30.0
PING_TIMEOUT_SECONDS = 10.0
MIN_PING_INTERVAL_SECONDS = PING_TIMEOUT_SECONDS  # clients may keep connections alive by pinging this often
# Further calls wait on the caller's side. Without a limit, a flood of calls begun and cancelled delays all others.
MAX_CALLS = 1000
# Of these, calls don't count as open: tools may keep streams of reflection open.
NEVER_OPEN = (health.SERVICE_NAME, *reflection.SERVICE_NAMES)

# Bytes of a message that are received before it is read: gRPC's window for each call, whose own bytes have room for it.
UNREAD_BYTES = CALL_BYTES // 2


def build_grpc_server(
    config: ServerConfig,
    apis: Sequence[GrpcApi],
    pipeline: CallPipeline,
    open_calls: OpenCalls,
    health_servicer: HealthServicer,
    memory: Memory,
    max_connections: int,
) -> grpc.aio.Server:
    logging.getLogger(GRPC_LOGGER).addFilter(is_worth_logging)
    with patient_threads():
        server = grpc.aio.server(
            interceptors=[CallInterceptor(apis, pipeline, Intake(memory), open_calls)],
            options=_channel_options(config, max_connections),
        )
    for api in apis:
        api.add_to(server)
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    if config.reflection:
        reflection.enable_reflection([*(api.name for api in apis), health.SERVICE_NAME], server)
    return server


def _channel_options(config: ServerConfig, max_connections: int) -> list[tuple[str, int]]:
    options = [
        # Compressed messages are rejected before inflating them, which could take a thousand times the memory.
        ("grpc.compression_enabled_algorithms_bitset", _ALGORITHMS),
        ("grpc.per_message_decompression", int(_INFLATES)),
        ("grpc.so_reuseport", int(config.reuse_port)),  # without this option a second server shares the port unnoticed
        ("grpc.max_receive_message_length", config.max_request_bytes),
        # Between these two sizes gRPC rejects some calls at random.
        ("grpc.max_metadata_size", config.max_metadata_bytes),
        ("grpc.absolute_max_metadata_size", config.max_metadata_bytes),
        *connection_options(max_connections),
    ]
    if config.max_connection_age_seconds:
        options += [
            ("grpc.max_connection_age_ms", round(config.max_connection_age_seconds * 1000)),
            ("grpc.max_connection_age_grace_ms", round(config.grace_seconds * 1000)),
        ]
    return options


def connection_options(max_connections: int) -> list[tuple[str, int]]:
    return [
        ("grpc.max_allowed_incoming_connections", max_connections),
        ("grpc.enable_channelz", 1),  # which counts them: `num_connections`
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
