"""The ports of operators: one for scrapers and probes, and one for the status page and its calls."""

import asyncio
from collections.abc import Callable

from service.calls.pipeline import CallPipeline
from service.config.server_config import ServerConfig
from service.faces.admin.calls import AdminCalls
from service.faces.admin.server import AdminServer
from service.faces.http.listener import HttpListener
from service.faces.http.monitoring import monitoring_listener
from service.process.lifecycle import Phase
from service.server.model_loading import Models
from service.server.observing import Observers


class OperatorPorts:
    """The ports of operators. All methods belong to the event loop's thread."""

    def __init__(
        self,
        config: ServerConfig,
        models: Models,
        observers: Observers,
        pipeline: CallPipeline,
        phase: Callable[[], Phase],
    ) -> None:
        self.metrics_port = config.metrics_port
        self.admin_port = config.admin_port
        self._config = config
        self._models = models
        self._observers = observers
        self._pipeline = pipeline
        self._phase = phase
        self._listeners: list[HttpListener] = []

    @property
    def is_open(self) -> bool:
        return bool(self._listeners)

    def open(self) -> None:
        config, metrics = self._config, self._observers.metrics
        silent_seconds = self._observers.heartbeat.silent_seconds
        self.metrics_port = self._start(
            monitoring_listener(config.metrics_host, config.metrics_port, metrics, self._phase, silent_seconds)
        )
        if config.admin_port >= 0:
            self.admin_port = self._start(self._admin().listener())

    async def close(self) -> None:
        await asyncio.gather(*(asyncio.to_thread(listener.stop) for listener in self._listeners))

    def _start(self, listener: HttpListener) -> int:
        self._listeners.append(listener)
        listener.start()
        return listener.port

    def _admin(self) -> AdminServer:
        models, observers = self._models, self._observers
        calls = AdminCalls(
            models.translator,
            models.control,
            models.reloader.reload,
            self._pipeline,
            self._phase,
            self._config.default_deadline_seconds,
        )
        return AdminServer(
            self._config, calls, self._phase, lambda: list(models.fleet.models), observers.metrics, observers.errors
        )
