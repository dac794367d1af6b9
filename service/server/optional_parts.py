"""Parts that depend on installation and configuration: tracing, glossaries, ONNX Runtime's version."""

from importlib import metadata
from typing import TYPE_CHECKING

import service
from service.config.server_config import ServerConfig
from service.domain.errors import InvalidRequest
from service.domain.translation import OwnPlaceholder
from service.text.placeholders import OwnPlaceholders

if TYPE_CHECKING:
    from service.observe.tracing import Tracing


class WrongPlaceholder(Exception):
    """A pattern of placeholders can't be used."""


class TracingUnavailable(Exception):
    """Tracing is configured, but OpenTelemetry is not installed."""


def tracing_of(config: ServerConfig) -> "Tracing | None":
    """Return the exporter of spans to the collector, if one is set."""
    if not config.otlp_endpoint:
        return None
    try:
        from service.observe.tracing import Tracing
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise TracingUnavailable(
            f"otlp_endpoint is {config.otlp_endpoint!r} and OpenTelemetry is not installed; install "
            "'dragoman[otel]', or leave otlp_endpoint out."
        ) from error
    return Tracing(config.otlp_endpoint, config.trace_ratio, service.__version__)


def placeholders_of(config: ServerConfig) -> tuple[OwnPlaceholder, ...]:
    own = tuple(map(OwnPlaceholder, config.placeholder))
    try:
        OwnPlaceholders(own)
    except InvalidRequest as error:
        raise WrongPlaceholder(f"the setting placeholder can't be used: {error}") from error
    return own


def onnxruntime_version() -> str:
    for distribution in ("onnxruntime", "onnxruntime-gpu"):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"
