"""The server process: builds and connects all parts, and controls them from start to stop.

Start: metrics port -> admin port -> gRPC port, NOT_SERVING -> load, self-test, warm up -> SERVING. Then SIGHUP, a timer
or an operator reloads the models from disk.
A failed engine is restarted (`models/supervisor.py`), NOT_SERVING meanwhile; if that fails, the process ends.
Stop: NOT_SERVING -> drain delay -> no new calls, accepted ones finish within the grace period -> engines -> ports.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable

import service
from service.calls.gate import Gate
from service.calls.pipeline import CallObserver, CallPipeline
from service.config.server_config import ServerConfig
from service.domain.errors import ServiceError
from service.domain.translation import CallLimits
from service.faces.admin.calls import AdminCalls
from service.faces.admin.routes import admin_listener, routed
from service.faces.admin.server import AdminServer, ServerView
from service.faces.grpc.tls import tls_of
from service.faces.http.listener import HttpListener
from service.faces.http.monitoring import monitoring_listener
from service.faces.http.triton_metrics import triton_metrics
from service.models.control import ModelControl
from service.models.fleet import Fleet
from service.models.loaded_model import LoadedModel
from service.models.reload_plan import ReloadOutcome
from service.models.repository import ALL
from service.models.supervisor import Supervisor
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors
from service.process.lifecycle import LAST_SECONDS, Heartbeat, Phase, leave_within, on_parent, on_signals, set_within
from service.process.memory import map_large_blocks
from service.process.temporary_folder import remove_leftovers
from service.server.call_ports import CallPorts
from service.server.model_loading import FleetBridge, ModelLoader
from service.server.optional_parts import glossaries_of, onnxruntime_version, placeholders_of, tracing_of
from service.server.reloading import Reloader, follow_files
from service.server.worker import Worker
from service.translation.cache import TranslationCache
from service.translation.translator import Translator

_LOG = logging.getLogger(__name__)

_STOP_SECONDS = 20.0  # for all of a stop beyond the time that calls get, whatever hangs


class Server:
    """One server process. All methods belong to the event loop's thread."""

    def __init__(self, config: ServerConfig, *, checks_integrity: bool = False, worker: Worker | None = None) -> None:
        """Build everything that needs no port; must be called on a running event loop.

        As a `worker`, this process is one of several that share the gRPC port: its parent stops it, and
        it opens the port when its models are loaded, so that it gets no connections before. `checks_integrity` makes
        the engines check their state, as defined by `EngineConfig`; for tests.
        """
        self.config = config
        self._worker = worker
        self.metrics_port = config.metrics_port
        self.admin_port = config.admin_port
        self.has_failed = False  # an engine could not be restarted
        self._phase = Phase.LOADING
        self._metrics = Metrics()
        self.errors = RecentErrors()
        cache = TranslationCache(config.cache_mib * 2**20)
        self._metrics.memory_for_cache(cache.max_bytes, lambda: cache.num_bytes)
        glossaries = glossaries_of(config)
        limits = CallLimits(config.max_characters, config.max_waiting, config.max_answer_characters)
        self._translator = Translator(self._metrics, cache, glossaries, limits, placeholders_of(config))
        self._tls = tls_of(config)
        self._gate = None if config.api_keys is None else Gate(config.api_keys, self._metrics)
        self._following_files: asyncio.Task[None] | None = None
        self._http: list[HttpListener] = []
        self._loop = asyncio.get_running_loop()
        self._heartbeat = Heartbeat(on_beat=worker.parent.beat if worker else None)
        self._metrics.watches_loop(lambda: len(asyncio.all_tasks(self._loop)), self._heartbeat.silent_seconds)
        self._lost, self._orphaned = asyncio.Event(), asyncio.Event()
        self._is_explicit = config.model_control == "explicit"
        map_large_blocks()  # before models are loaded
        loader = ModelLoader(
            config,
            self._loop,
            self._metrics,
            self._translator,
            lambda _: self._supervisor.wake(),
            checks_integrity=checks_integrity,
            maps_weights=worker is not None,
        )
        self._fleet = Fleet(
            config.models,
            config.max_versions,
            loader.load,
            loader.try_out,
            FleetBridge(self._metrics, self._translator, config.pivot_languages),
            drain_seconds=config.grace_seconds,
        )
        self._reloader = Reloader(self._fleet, glossaries, self._metrics, is_explicit=self._is_explicit)
        if config.triton_metrics:
            self._metrics.shows(lambda: triton_metrics(self.models))
        self._tracing = tracing_of(config)
        access_log = AccessLog(config.access_log_ratio, with_texts=config.log_text)
        observer = CallObserver(self._metrics, self.errors, access_log, self._tracing)
        self._pipeline = CallPipeline(self._metrics, observer, self._translator.overload, self._gate)
        self._supervisor = Supervisor(self._fleet, self, config.stuck_turn_seconds)
        self._watching: asyncio.Task[None] | None = None
        self._control = ModelControl(self._fleet, is_explicit=self._is_explicit)
        self.calls = CallPorts(
            config,
            self._translator,
            worker.control(self._control, is_explicit=self._is_explicit) if worker else self._control,
            self._pipeline,
            lambda: self._phase,
            self._tls,
            shared_documents=worker.documents if worker else None,
        )
        memory = self.calls.memory
        self._metrics.memory_for_calls(memory.max_bytes, lambda: memory.num_bytes)

    @property
    def port(self) -> int:
        return self.calls.port

    @property
    def http_port(self) -> int:
        """Return the port of calls over HTTP; -1 if there is none."""
        return self.calls.http_port

    @property
    def models(self) -> list[LoadedModel]:
        return self._fleet.models

    @property
    def num_refused(self) -> int:
        """Return how many bundles could not be loaded."""
        return self._fleet.num_refused

    @property
    def translator(self) -> Translator:
        return self._translator

    @property
    def phase(self) -> Phase:
        return self._phase

    async def run(self, announce: Callable[["Server"], Awaitable[None]]) -> None:
        """Serve until SIGTERM or SIGINT; a second one ends the process immediately.

        `announce` is called when the server is ready; a stop does not wait for it, and if it fails, the server ends
        with its exception. The server also ends if an engine can't be restarted; then `has_failed` is set.
        """
        stop, reload = asyncio.Event(), asyncio.Event()
        if self._worker is None:
            on_signals(stop, reload)
        else:
            on_parent(self._worker.parent, stop, reload, self._orphaned)
        try:
            await self.open()
            loading = asyncio.ensure_future(self.load())
            ends = {asyncio.ensure_future(event.wait()) for event in (stop, self._lost)}
            await asyncio.wait({loading, *ends}, return_when=asyncio.FIRST_COMPLETED)
            if loading.done():
                loading.result()
                announcing = asyncio.ensure_future(announce(self))
                following = asyncio.ensure_future(self._reloader.follow(reload, self.config.reload_seconds))
                await asyncio.wait({announcing, *ends}, return_when=asyncio.FIRST_COMPLETED)
                if announcing.done():
                    announcing.result()
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                announcing.cancel()
                following.cancel()
            else:  # nobody asks any more whether it fails
                loading.add_done_callback(lambda loaded: loaded.cancelled() or loaded.exception())
            if self.has_failed:
                leave_within(_STOP_SECONDS, os.EX_SOFTWARE)
            else:
                seconds_for_calls = self.config.drain_delay_seconds + self.config.grace_seconds
                leave_within(seconds_for_calls + _STOP_SECONDS, os.EX_OK)
        finally:
            await self.close()

    async def open(self) -> None:
        """Open the ports; all calls but health checks are answered UNAVAILABLE until the models are loaded."""
        config = self.config
        self._heartbeat.start()
        if self._worker is None:
            await asyncio.to_thread(remove_leftovers)
        monitoring = monitoring_listener(
            config.metrics_host,
            config.metrics_port,
            self._metrics,
            lambda: self._phase,
            self._heartbeat.silent_seconds,
        )
        self._http.append(monitoring)
        self.metrics_port = monitoring.port
        monitoring.start()
        if config.admin_port >= 0:
            admin = admin_listener(
                config.admin_host, config.admin_port, routed(self._admin(), config.admin_host), config.max_request_bytes
            )
            self._http.append(admin)
            self.admin_port = admin.port
            admin.start()
        self._metrics.built_with(service.__version__, onnxruntime_version(), config.device)
        self._enter(Phase.LOADING)
        if self._worker is None:
            self.calls.check()
            await self.calls.open()
        self._watching = asyncio.create_task(self._supervisor.watch())
        if self._tls or self._gate:
            self._following_files = asyncio.create_task(follow_files(self._tls, self._gate, self._metrics))

    async def load(self) -> None:
        """Load, test and warm up the models, then serve those that can be."""
        if self._worker is not None and await self._worker.others_serve():
            served = await self._worker.served_by_others() if self._is_explicit else (ALL,)
            await self._fleet.load(self.config.load_model if served is None else served, beside_others=True)
        else:
            await self._fleet.load(self.config.load_model if self._is_explicit else (ALL,))
        if self._worker is not None and self._is_explicit:
            await self._follow(self._worker)
        if self._phase is Phase.LOADING:
            self._enter(Phase.RECOVERING if self._supervisor.is_recovering else Phase.SERVING)
            if self._worker is not None:
                await self.calls.open()

    async def _follow(self, worker: Worker) -> None:
        """Load and unload what other workers have, while this one was loading."""
        served, own = await worker.served_by_others(), {model.name for model in self.models}
        for name in set() if served is None else own.symmetric_difference(served):
            try:
                await (self._control.unload(name) if name in own else self._control.load(name))
            except ServiceError as error:
                _LOG.error("this worker does not serve the same models as others: %s", error)

    async def reload(self) -> ReloadOutcome:
        return await self._reloader.reload()

    async def close(self) -> None:
        """Answer every accepted call, then stop. Calls that outlast the grace period are answered UNAVAILABLE."""
        was_serving = self._phase in (Phase.SERVING, Phase.RECOVERING)
        grace_seconds = self.config.grace_seconds
        if self.has_failed:
            grace_seconds = min(grace_seconds, LAST_SECONDS)  # for calls to other models
        elif self._http:  # otherwise no port has been opened
            self._enter(Phase.DRAINING)
        if was_serving:
            await set_within(self.config.drain_delay_seconds, self._orphaned)  # frees the port for a new supervisor
        if self._following_files is not None:
            self._following_files.cancel()
        await self.calls.drain(grace_seconds)
        if self._watching is not None:
            self._watching.cancel()
        self._control.close()
        self._translator.close()
        await self._fleet.stop()
        await self.calls.close()
        if self._tracing is not None and not await asyncio.to_thread(self._tracing.close, LAST_SECONDS):
            _LOG.warning("the last spans could not be sent within %g s", LAST_SECONDS)
        await asyncio.gather(*(asyncio.to_thread(listener.stop) for listener in self._http))
        self._heartbeat.stop()

    def _admin(self) -> AdminServer:
        config = self.config
        view = ServerView(config.device, self._is_explicit, lambda: self._phase, lambda: list(self._fleet.models))
        calls = AdminCalls(
            self._translator,
            self._control,
            self.reload,
            self._pipeline,
            view.phase,
            config.default_deadline_seconds,
        )
        return AdminServer(view, calls, self._metrics, self.errors, self._loop, config.default_deadline_seconds)

    def on_recovering(self, recovering: bool) -> None:
        if self._phase in (Phase.SERVING, Phase.RECOVERING):
            self._enter(Phase.RECOVERING if recovering else Phase.SERVING)

    def on_lost(self, reason: str) -> None:
        _LOG.critical("%s The process exits", reason)
        self.has_failed = True
        self._enter(Phase.FAILED)
        self._lost.set()

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self.calls.set_serving(phase.is_ready)
        self._metrics.state(ready=phase.is_ready, draining=phase is Phase.DRAINING)
        _LOG.info("the server is %s", phase.value)
