"""Assembly of servicers, interceptors, health, reflection and channel options into one gRPC server."""

import logging

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from service.calls.pipeline import CallPipeline
from service.config.server_config import ServerConfig
from service.faces.grpc import health
from service.faces.grpc.absent_callers import is_worth_logging
from service.faces.grpc.calls import AdmissionInterceptor, ArrivalInterceptor, CallInterceptor
from service.faces.grpc.connections import connection_options
from service.faces.grpc.dragoman import servicer as translation_servicer
from service.faces.grpc.dragoman.servicer import TranslationServicer
from service.faces.grpc.google import servicer as google_servicer
from service.faces.grpc.google.servicer import GoogleServicer
from service.faces.grpc.google.unsupported import UnsupportedMethods
from service.faces.grpc.health import HealthServicer
from service.faces.grpc.intake import IntakeInterceptor, Memory
from service.faces.grpc.interceptors import OnceInterceptor, ParsingInterceptor
from service.faces.grpc.kserve import servicer as kserve_servicer
from service.faces.grpc.kserve.servicer import KServeServicer
from service.faces.grpc.open_calls import OpenCalls
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as dragoman_grpc
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as google_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from service.translation.translator import Translator

_API_NAMES = (translation_servicer.SERVICE_NAME, google_servicer.SERVICE_NAME, kserve_servicer.SERVICE_NAME)
_ALGORITHMS = 1  # the bit of gRPC's first "algorithm": no compression
_INFLATES = 0
_GRPC_LOGGER = "grpc._cython.cygrpc"


def new_health_servicer() -> HealthServicer:
    """Return the health of the whole server and of each of its APIs, NOT_SERVING at first."""
    return HealthServicer(_API_NAMES)


def new_open_calls() -> OpenCalls:
    """Return the open calls of our APIs; reflection is ignored, as tools may keep its streams open."""
    return OpenCalls(ignored=(health.SERVICE_NAME, reflection.SERVICE_NAME))


def build_grpc_server(
    config: ServerConfig,
    translator: Translator,
    pipeline: CallPipeline,
    open_calls: OpenCalls,
    health_servicer: HealthServicer,
    kserve: KServeServicer,
    memory: Memory,
) -> grpc.aio.Server:
    """Return a server that is neither bound to a port nor started."""
    logging.getLogger(_GRPC_LOGGER).addFilter(is_worth_logging)
    server = grpc.aio.server(
        interceptors=[
            OnceInterceptor(),
            ArrivalInterceptor(pipeline),
            IntakeInterceptor(memory, pipeline),
            open_calls,
            AdmissionInterceptor(pipeline),
            CallInterceptor(pipeline),
            ParsingInterceptor(),
        ],
        options=_channel_options(config),
    )
    dragoman_grpc.add_TranslationServiceServicer_to_server(
        TranslationServicer(translator, config.default_deadline_seconds), server
    )
    google_grpc.add_TranslationServiceServicer_to_server(
        GoogleServicer(translator, config.default_deadline_seconds), server
    )
    server.add_generic_rpc_handlers((UnsupportedMethods(),))
    kserve_grpc.add_GRPCInferenceServiceServicer_to_server(kserve, server)
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    if config.reflection:
        reflection.enable_server_reflection([*_API_NAMES, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    return server


def _channel_options(config: ServerConfig) -> list[tuple[str, int]]:
    options = [
        # Compressed messages are rejected before inflating them, which could take a thousand times the memory.
        ("grpc.compression_enabled_algorithms_bitset", _ALGORITHMS),
        ("grpc.per_message_decompression", _INFLATES),
        ("grpc.so_reuseport", 0),  # else a second server shares the port unnoticed
        ("grpc.max_receive_message_length", config.max_request_bytes),
        # Between these two sizes gRPC rejects some calls at random.
        ("grpc.max_metadata_size", config.max_metadata_bytes),
        ("grpc.absolute_max_metadata_size", config.max_metadata_bytes),
        *connection_options(config.max_connections),
    ]
    if config.max_connection_age_seconds:
        options += [
            ("grpc.max_connection_age_ms", round(config.max_connection_age_seconds * 1000)),
            ("grpc.max_connection_age_grace_ms", round(config.grace_seconds * 1000)),
        ]
    return options
