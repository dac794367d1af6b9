"""Builds everything, wires it together, and leads it from the first port to the last answer.

Start: metrics port -> admin port -> gRPC port, NOT_SERVING -> load, self-test, warm up -> SERVING. Then SIGHUP, a
clock or an operator has it look at the models on disk again.
Stop: NOT_SERVING -> drain delay -> no new calls, accepted ones finish within the grace -> engines -> ports.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING

import service
from service.access_log import AccessLog
from service.admin.calls import AdminCalls
from service.admin.server import AdminServer, ServerView, admin_listener
from service.config import ServerConfig
from service.engine.config import EngineConfig
from service.engine.session import SessionConfig
from service.engine_bridge import EngineBridge
from service.fleet_bridge import FleetBridge
from service.http_listener import HttpListener
from service.lifecycle import Phase, ReloadOutcome
from service.metrics import Metrics
from service.models.control import ModelControl
from service.models.fleet import Fleet
from service.models.loaded_model import LoadedModel
from service.models.loader import load_model
from service.models.repository import ALL, FoundBundle
from service.models.statistics import InferenceStatistics
from service.monitoring import monitoring_listener
from service.ports import PortError, check_port, join_address
from service.recent_errors import RecentErrors
from service.rpc.grpc_server import build_grpc_server, new_health_servicer
from service.rpc.kserve_servicer import KServeServicer
from service.rpc.observer import CallObserver
from service.rpc.tls import tls_of
from service.text.glossary import GlossaryFolder, NoGlossaries
from service.translation_cache import TranslationCache
from service.translator import Translator
from service.triton_metrics import triton_metrics

if TYPE_CHECKING:
    from service.access.gate import Gate
    from service.tracing import Tracing

_LOG = logging.getLogger(__name__)

# A turn takes milliseconds; one that takes this long is stuck in native code, where nothing can stop it.
_STUCK_TURN_SECONDS = 60.0
_WATCH_SECONDS = 1.0
_LOOK_AT_FILES_SECONDS = 0.5  # those of TLS and API keys
# A call whose engine was stopped under it still gets its answer in this time.
_LAST_ANSWER_SECONDS = 2.0
_LAST_SPANS_SECONDS = 2.0


class TracingUnavailable(Exception):
    """Spans are asked for, and what would send them is not installed."""


class Server:
    """One server process. All methods belong to the event loop's thread."""

    def __init__(self, config: ServerConfig) -> None:
        """Build what needs no port; must be called on a running event loop.

        Raises:
            FileProblem: a file of TLS or API keys can't be used.
            TracingUnavailable: there is an `otlp_endpoint`, and OpenTelemetry is not installed.
        """
        self.config = config
        self.port = config.port
        self.metrics_port = config.metrics_port
        self.admin_port = config.admin_port
        self.has_failed = False  # an engine died or got stuck
        self._phase = Phase.LOADING
        self._metrics = Metrics()
        self._errors = RecentErrors()
        cache = TranslationCache(config.cache_mib * 2**20)
        self._metrics.caches_in(cache)
        self._glossaries = GlossaryFolder(config.glossaries) if config.glossaries else NoGlossaries()
        self._translator = Translator(self._metrics, cache, self._glossaries, config.max_characters)
        self._tls = tls_of(config)
        self._gate = _gate_of(config, self._metrics)
        self._following_files: asyncio.Task[None] | None = None
        self._http: list[HttpListener] = []
        self._loop = asyncio.get_running_loop()
        self._metrics.counts_tasks(lambda: len(asyncio.all_tasks(self._loop)))
        self._closing = asyncio.Event()
        self._reloading = asyncio.Lock()
        self._is_explicit = config.model_control == "explicit"
        self._fleet = Fleet(
            config.models,
            config.max_versions,
            self._load_one,
            FleetBridge(self._metrics, self._translator),
            drain_seconds=config.grace_seconds,
        )
        if config.triton_metrics:
            self._metrics.shows(lambda: triton_metrics(self.models))
        self._tracing = _tracing(config)
        access_log = AccessLog(config.access_log_ratio, with_texts=config.log_text)
        observer = CallObserver(self._metrics, self._errors, access_log, self._tracing)
        self._control = ModelControl(self._fleet, is_explicit=self._is_explicit)
        self._health = new_health_servicer()
        kserve = KServeServicer(
            self._translator,
            self._control,
            self._metrics,
            observer,
            lambda: self._phase,
            self._closing,
            config.default_deadline_seconds,
        )
        self._grpc = build_grpc_server(
            config, self._translator, self._metrics, observer, self._health, kserve, self._gate
        )

    @property
    def models(self) -> list[LoadedModel]:
        """What is served."""
        return self._fleet.models

    @property
    def has_threads_left(self) -> bool:
        """Whether a thread is in native code and can't be ended: leave without it."""
        return self._fleet.has_threads_left

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
        stop, reload = asyncio.Event(), asyncio.Event()
        _on_signals(stop, reload)
        try:
            await self.open()
            loading, stopping = asyncio.ensure_future(self.load()), asyncio.ensure_future(stop.wait())
            await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if loading.done():
                loading.result()
                announce(self)
                attendants = [asyncio.ensure_future(work) for work in (self._watch_engines(), self._follow(reload))]
                await stopping
                for attendant in attendants:
                    attendant.cancel()
        finally:
            await self.close()

    async def open(self) -> None:
        """Open the ports; every call but health is answered UNAVAILABLE until the models are loaded.

        Raises:
            PortError: as for `run`.
        """
        config = self.config
        monitoring = monitoring_listener(config.metrics_host, config.metrics_port, self._metrics, lambda: self._phase)
        self._http.append(monitoring)
        self.metrics_port = monitoring.port
        monitoring.start()
        if config.admin_port >= 0:
            admin = admin_listener(config.admin_host, config.admin_port, self._admin(), config.max_request_bytes)
            self._http.append(admin)
            self.admin_port = admin.port
            admin.start()
        check_port(config.host, config.port, "gRPC", "--port")
        try:
            address = join_address(config.host, config.port)
            if self._tls:
                self.port = self._grpc.add_secure_port(address, self._tls.credentials())
            else:
                self.port = self._grpc.add_insecure_port(address)
        except RuntimeError as error:
            raise PortError(f"can't listen on {join_address(config.host, config.port)} for gRPC: {error}") from error
        self._metrics.built_with(service.__version__, _onnxruntime_version(), config.device)
        self._enter(Phase.LOADING)
        await self._grpc.start()
        if self._tls or self._gate:
            self._following_files = asyncio.create_task(self._follow_files())

    async def load(self) -> None:
        """Load, test and warm up the models, then serve.

        Raises:
            BundleError: as for `run`.
        """
        await self._fleet.load(self.config.load_model if self._is_explicit else (ALL,))
        if self._phase is Phase.LOADING:  # no engine died meanwhile
            self._enter(Phase.SERVING)

    async def reload(self) -> ReloadOutcome:
        """Serve what is on disk now; calls go on meanwhile, reloads one after the other.

        With explicit model control that is said of glossaries only.
        """
        async with self._reloading:
            if await asyncio.to_thread(self._glossaries.refresh):
                _LOG.info("glossaries have changed")
            if self._is_explicit:
                return ReloadOutcome.UNCHANGED
            try:
                outcome = await self._fleet.reload()
            except Exception:
                _LOG.exception("reloading failed; what was served stays")
                outcome = ReloadOutcome.FAILED
            self._metrics.reloaded(outcome)
            return outcome

    async def close(self) -> None:
        """Answer every accepted call, then stop. Calls that outlast the grace are answered UNAVAILABLE."""
        was_serving = self._phase is Phase.SERVING
        if self._http:  # else no port was opened
            self._enter(Phase.DRAINING)
        if was_serving:
            await asyncio.sleep(self.config.drain_delay_seconds)
        self._health.close()
        self._closing.set()
        if self._following_files is not None:
            self._following_files.cancel()
        stopping = asyncio.ensure_future(self._grpc.stop(self.config.grace_seconds + _LAST_ANSWER_SECONDS))
        await asyncio.wait({stopping}, timeout=self.config.grace_seconds)
        if not stopping.done():
            _LOG.warning("calls outlasted the grace of %g s; they are given up", self.config.grace_seconds)
        self._control.close()
        await self._fleet.stop()
        await stopping
        if self._tracing is not None and not await asyncio.to_thread(self._tracing.close, _LAST_SPANS_SECONDS):
            _LOG.warning("the last spans could not be sent within %g s", _LAST_SPANS_SECONDS)
        for listener in self._http:
            listener.stop()
        self._translator.close()

    def _admin(self) -> AdminServer:
        config = self.config
        view = ServerView(config.device, self._is_explicit, lambda: self._phase, lambda: list(self._fleet.models))
        calls = AdminCalls(
            self._translator,
            self._control,
            self.reload,
            self._metrics,
            self._errors,
            view.phase,
            config.default_deadline_seconds,
        )
        return AdminServer(
            view, calls, self._metrics, self._errors, self._loop, config.admin_host, config.default_deadline_seconds
        )

    def _load_one(self, bundle: FoundBundle) -> LoadedModel:
        """Called on a thread of the fleet's."""
        _LOG.info("loading %s", bundle.directory)
        config = self.config
        statistics = InferenceStatistics()
        bridge = EngineBridge(
            self._loop,
            self._metrics.model(bundle.name),
            statistics,
            self._translator.deliver,
            lambda error: self._engine_failed(bundle, error),
        )
        engine_config = EngineConfig(max_slots=config.max_slots or None, max_waiting=config.max_waiting)
        session_config = SessionConfig(device=config.device, intra_op_threads=config.num_threads)
        return load_model(bundle, engine_config, session_config, bridge, statistics)

    async def _follow(self, asked: asyncio.Event) -> None:
        """Look at the disk whenever it is asked for, and every so often if the settings say so."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asked.wait(), self.config.reload_seconds or None)
            if self._is_explicit and asked.is_set():
                _LOG.warning("SIGHUP changes no models: with --model-control explicit, they are loaded by call only")
            asked.clear()
            await self.reload()

    async def _follow_files(self) -> None:
        """Use certificates and keys as they are on disk now. New connections and calls get them; others go on."""
        while True:
            if self._tls:
                self._metrics.tls_valid_until(self._tls.not_after_seconds)
            await asyncio.sleep(_LOOK_AT_FILES_SECONDS)
            try:
                if self._tls is not None and await asyncio.to_thread(self._tls.refresh):
                    _LOG.info("new connections get the new TLS certificate")
                if self._gate is not None and await asyncio.to_thread(self._gate.refresh):
                    _LOG.info("the API keys have changed")
            except Exception:
                _LOG.exception("looking at the files of TLS and API keys failed; what was read before stays in use")

    async def _watch_engines(self) -> None:
        """Notice an engine that neither works nor dies."""
        while not self.has_failed:
            await asyncio.sleep(_WATCH_SECONDS)
            for model in self.models:
                seconds = model.engine.snapshot().turn_seconds
                if seconds > _STUCK_TURN_SECONDS:
                    self._engine_failed(model.bundle, TimeoutError(f"a turn has taken {seconds:.0f} s"))

    def _engine_failed(self, bundle: FoundBundle, error: BaseException) -> None:
        if self._fleet.is_retiring(bundle):
            _LOG.error("the engine of %s failed (%s) while it was being retired", bundle.directory, error)
            return
        _LOG.critical("the engine of %s failed (%s); restart the server", bundle.directory, error)
        self.has_failed = True
        if self._phase is not Phase.DRAINING:
            self._enter(Phase.FAILED)

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._health.set_serving(phase.is_ready)
        self._metrics.state(ready=phase.is_ready, draining=phase is Phase.DRAINING)
        _LOG.info("the server is %s", phase.value)


def _tracing(config: ServerConfig) -> "Tracing | None":
    if not config.otlp_endpoint:
        return None
    try:
        from service.tracing import Tracing
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise TracingUnavailable(
            f"otlp_endpoint is {config.otlp_endpoint!r} and OpenTelemetry is not installed; install "
            "'dragoman[otel]', or leave otlp_endpoint out."
        ) from error
    return Tracing(config.otlp_endpoint, config.trace_ratio, service.__version__)


def _on_signals(stop: asyncio.Event, reload: asyncio.Event) -> None:
    def stop_or_leave(number: signal.Signals) -> None:
        if stop.is_set():
            _LOG.warning("second %s: leaving at once", number.name)
            os._exit(128 + number)
        _LOG.info("%s: stopping; a second one leaves at once", number.name)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_or_leave, number)
    loop.add_signal_handler(signal.SIGHUP, reload.set)


def _gate_of(config: ServerConfig, metrics: Metrics) -> "Gate | None":
    if config.api_keys is None:
        return None
    from service.access.gate import Gate  # its library for quotas takes a while to import

    return Gate(config.api_keys, metrics)


def _onnxruntime_version() -> str:
    for distribution in ("onnxruntime", "onnxruntime-gpu"):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"
