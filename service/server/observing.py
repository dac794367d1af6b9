"""Observers of a server and its calls: metrics, logs, traces and recent errors."""

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import service
from service.calls.pipeline import CallObserver
from service.config.server_config import ServerConfig
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors
from service.process.lifecycle import LAST_SECONDS, Heartbeat
from service.server.optional_parts import onnxruntime_version, tracing_of

if TYPE_CHECKING:
    from service.observe.tracing import Tracing

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Observers:
    """The observers of one server; `calls` tells the others of each call."""

    metrics: Metrics
    errors: RecentErrors
    tracing: "Tracing | None"
    calls: CallObserver
    heartbeat: Heartbeat

    async def close(self) -> None:
        if self.tracing is not None and not await asyncio.to_thread(self.tracing.close, LAST_SECONDS):
            _LOG.warning("the last spans could not be sent within %g s", LAST_SECONDS)
        self.heartbeat.stop()


def observers_of(config: ServerConfig) -> Observers:
    """Build the observers, on the server's event loop."""
    loop = asyncio.get_running_loop()
    metrics, errors = Metrics(), RecentErrors()
    heartbeat = Heartbeat(metrics.loop_was_late)
    metrics.built_with(service.__version__, onnxruntime_version(), config.device)
    metrics.watches_loop(lambda: len(asyncio.all_tasks(loop)), heartbeat.silent_seconds)
    tracing = tracing_of(config)
    access_log = AccessLog(config.access_log_ratio, with_texts=config.log_text)
    return Observers(metrics, errors, tracing, CallObserver(metrics, errors, access_log, tracing), heartbeat)
