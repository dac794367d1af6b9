"""Builds everything, wires it together, and leads it from the first port to the last answer.

Start: metrics port -> gRPC port, NOT_SERVING -> load, self-test, warm up -> SERVING.
Stop: NOT_SERVING -> drain delay -> no new calls, accepted ones finish within the grace -> engines -> ports.
"""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from importlib import metadata
from typing import TypeVar

import service
from service.config import ServerConfig
from service.engine.config import EngineConfig
from service.engine.session import SessionConfig
from service.engine_bridge import EngineBridge
from service.lifecycle import Phase
from service.metrics import Metrics
from service.models.catalogue import Catalogue
from service.models.loaded_model import LoadedModel
from service.models.loader import load_model
from service.models.repository import FoundBundle, find_bundles
from service.monitoring import MonitoringServer
from service.ports import PortError, check_port, join_address
from service.rpc.grpc_server import build_grpc_server, new_health_servicer
from service.translation_cache import TranslationCache
from service.translator import Translator

_LOG = logging.getLogger(__name__)

# A turn takes milliseconds; one that takes this long is stuck in native code, where nothing can stop it.
_STUCK_TURN_SECONDS = 60.0
_WATCH_SECONDS = 1.0
# A call whose engine was stopped under it still gets its answer in this time.
_LAST_ANSWER_SECONDS = 2.0
_ENGINE_STOP_SECONDS = 5.0

T = TypeVar("T")


class Server:
    """One server process. All methods belong to the event loop's thread."""

    def __init__(self, config: ServerConfig) -> None:
        """Build what needs no port; must be called on a running event loop."""
        self.config = config
        self.port = config.port
        self.metrics_port = config.metrics_port
        self.models: list[LoadedModel] = []
        self.has_failed = False  # an engine died or got stuck
        self.has_threads_left = False  # a thread is in native code and can't be ended: leave without it
        self._phase = Phase.LOADING
        self._metrics = Metrics()
        cache = TranslationCache(config.cache_mib * 2**20)
        self._metrics.caches_in(cache)
        self._translator = Translator(self._metrics, cache)
        self._health = new_health_servicer()
        self._grpc = build_grpc_server(config, self._translator, self._metrics, self._health)
        self._monitoring: MonitoringServer | None = None

    @property
    def phase(self) -> Phase:
        """Where the server stands."""
        return self._phase

    async def run(self, announce: Callable[["Server"], None]) -> None:
        """Serve until SIGTERM or SIGINT; a second one ends the process at once. `announce` is called when ready.

        Raises:
            PortError: a port can't be listened on.
            BundleError: a bundle is missing, damaged or fails its self-test.
        """
        stop = asyncio.Event()
        _on_stop_signals(stop)
        try:
            await self.open()
            loading, stopping = asyncio.ensure_future(self.load()), asyncio.ensure_future(stop.wait())
            await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if loading.done():
                loading.result()
                announce(self)
                watching = asyncio.ensure_future(self._watch_engines())
                await stopping
                watching.cancel()
        finally:
            await self.close()

    async def open(self) -> None:
        """Open the ports; every call but health is answered UNAVAILABLE until the models are loaded.

        Raises:
            PortError: as for `run`.
        """
        config = self.config
        self._monitoring = MonitoringServer(
            config.metrics_host, config.metrics_port, self._metrics, lambda: self._phase
        )
        self.metrics_port = self._monitoring.port
        self._monitoring.start()
        check_port(config.host, config.port, "gRPC", "--port")
        try:
            self.port = self._grpc.add_insecure_port(join_address(config.host, config.port))
        except RuntimeError as error:
            raise PortError(f"can't listen on {join_address(config.host, config.port)} for gRPC: {error}") from error
        self._metrics.built_with(service.__version__, _onnxruntime_version(), config.device)
        self._enter(Phase.LOADING)
        await self._grpc.start()

    async def load(self) -> None:
        """Load, test and warm up the models, then serve.

        Raises:
            BundleError: as for `run`.
        """
        self.has_threads_left = True
        for bundle in await _in_daemon_thread(lambda: find_bundles(self.config.models)):
            _LOG.info("loading %s from %s", bundle.manifest.name, bundle.directory)
            started = time.monotonic()
            model = await self._load_one(bundle)
            self.models.append(model)
            seconds = time.monotonic() - started
            self._metrics.serves(model.name, model.version, model.manifest.precision, model.manifest.checkpoint_sha256)
            self._metrics.model(model.name).loaded(model.engine, seconds)
            _LOG.info("loaded %s in %.1f s", model.name, seconds)
        self.has_threads_left = False
        self._translator.serve(Catalogue(self.models))
        if self._phase is Phase.LOADING:  # no engine died meanwhile
            self._enter(Phase.SERVING)

    async def close(self) -> None:
        """Answer every accepted call, then stop. Calls that outlast the grace are answered UNAVAILABLE."""
        was_serving = self._phase is Phase.SERVING
        if self._monitoring is not None:  # else the ports never opened
            self._enter(Phase.DRAINING)
        if was_serving:
            await asyncio.sleep(self.config.drain_delay_seconds)
        self._health.close()
        stopping = asyncio.ensure_future(self._grpc.stop(self.config.grace_seconds + _LAST_ANSWER_SECONDS))
        await asyncio.wait({stopping}, timeout=self.config.grace_seconds)
        if not stopping.done():
            _LOG.warning("calls outlasted the grace of %g s; they are given up", self.config.grace_seconds)
        for model in self.models:
            if not await asyncio.to_thread(model.engine.stop, _ENGINE_STOP_SECONDS):
                _LOG.warning("the engine of %s did not stop within %g s", model.name, _ENGINE_STOP_SECONDS)
                self.has_threads_left = True
        await stopping
        if self._monitoring is not None:
            self._monitoring.stop()
        self._translator.close()

    async def _load_one(self, bundle: FoundBundle) -> LoadedModel:
        config, name = self.config, bundle.manifest.name
        bridge = EngineBridge(
            asyncio.get_running_loop(),
            self._metrics.model(name),
            self._translator.deliver,
            lambda error: self._engine_failed(name, error),
        )
        engine_config = EngineConfig(max_slots=config.max_slots or None, max_waiting=config.max_waiting)
        session_config = SessionConfig(device=config.device, intra_op_threads=config.num_threads)
        return await _in_daemon_thread(lambda: load_model(bundle, engine_config, session_config, bridge))

    async def _watch_engines(self) -> None:
        """Notice an engine that neither works nor dies."""
        while not self.has_failed:
            await asyncio.sleep(_WATCH_SECONDS)
            for model in self.models:
                seconds = model.engine.snapshot().turn_seconds
                if seconds > _STUCK_TURN_SECONDS:
                    self._engine_failed(model.name, TimeoutError(f"a turn has taken {seconds:.0f} s"))

    def _engine_failed(self, model: str, error: BaseException) -> None:
        _LOG.critical("the engine of %s failed (%s); restart the server", model, error)
        self.has_failed = True
        if self._phase is not Phase.DRAINING:
            self._enter(Phase.FAILED)

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._health.set_serving(phase.is_ready)
        self._metrics.state(ready=phase.is_ready, draining=phase is Phase.DRAINING)
        _LOG.info("the server is %s", phase.value)


def _on_stop_signals(stop: asyncio.Event) -> None:
    def stop_or_leave(number: signal.Signals) -> None:
        if stop.is_set():
            _LOG.warning("second %s: leaving at once", number.name)
            os._exit(128 + number)
        _LOG.info("%s: stopping; a second one leaves at once", number.name)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_or_leave, number)


def _in_daemon_thread(work: Callable[[], T]) -> "asyncio.Future[T]":
    """Run `work` in a thread that does not keep the process alive: a stop must not wait for a model to load."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="loader", daemon=True).start()
    return asyncio.wrap_future(outcome)


def _onnxruntime_version() -> str:
    for distribution in ("onnxruntime", "onnxruntime-gpu"):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"
