"""The server process: builds and connects all parts, and controls them from start to stop.

Start: metrics port -> admin port -> gRPC port, NOT_SERVING -> load, self-test, warm up -> SERVING. Then SIGHUP, a timer
or an operator reloads the models from disk.
A failed engine is restarted (`models/supervisor.py`), NOT_SERVING meanwhile; if that fails, the process ends.
Stop: not ready -> drain delay, at whose end watchers hear NOT_SERVING -> no new calls, accepted ones finish within the
grace period -> engines -> ports.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable

from service.config.server_config import ServerConfig
from service.faces.grpc.health import LEAVE_SECONDS
from service.models.loaded_model import LoadedModel
from service.models.reload_plan import ReloadOutcome
from service.models.repository import ALL
from service.models.supervisor import Supervisor
from service.process.disk import remove_leftovers
from service.process.lifecycle import LAST_SECONDS, Phase, leave_within, on_signals
from service.process.memory import map_large_blocks
from service.server.call_ports import CallPorts
from service.server.model_loading import models_of
from service.server.observing import observers_of
from service.server.operator_ports import OperatorPorts
from service.translation.translator import Translator

_LOG = logging.getLogger(__name__)

_STOP_SECONDS = 20.0  # for all of a stop beyond the time that calls get, whatever hangs


class Server:
    """One server process. All methods belong to the event loop's thread."""

    def __init__(self, config: ServerConfig, *, checks_integrity: bool = False) -> None:
        """Build everything that needs no port, on a running event loop; `checks_integrity` as in `EngineConfig`."""
        self.config = config
        self.has_failed = False  # an engine could not be restarted
        self._phase = Phase.LOADING
        self._lost = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        map_large_blocks()  # before models are loaded
        self._observers = observers_of(config)
        self._metrics, self.errors = self._observers.metrics, self._observers.errors
        self._models = models_of(config, self._metrics, self._engine_failed, checks_integrity=checks_integrity)
        self._supervisor = Supervisor(self._models.fleet, self, config.stuck_turn_seconds)
        self.calls = CallPorts(config, self._models, self._observers, self._current_phase)
        self._operators = OperatorPorts(config, self._models, self._observers, self.calls.pipeline, self._current_phase)

    @property
    def port(self) -> int:
        return self.calls.port

    @property
    def http_port(self) -> int:
        """Return the port of calls over HTTP; -1 if there is none."""
        return self.calls.http_port

    @property
    def metrics_port(self) -> int:
        return self._operators.metrics_port

    @property
    def admin_port(self) -> int:
        """Return the port of the status page; -1 if there is none."""
        return self._operators.admin_port

    @property
    def models(self) -> list[LoadedModel]:
        return self._models.fleet.models

    @property
    def num_refused(self) -> int:
        return self._models.fleet.num_refused

    @property
    def translator(self) -> Translator:
        return self._models.translator

    @property
    def phase(self) -> Phase:
        return self._phase

    async def run(self, announce: Callable[["Server"], Awaitable[None]]) -> None:
        """Serve until SIGTERM or SIGINT; a second one ends the process immediately.

        `announce` is called when the server is ready; if it fails, the server ends with its exception, but a stop does
        not wait for it. If an engine can't be restarted, `has_failed` is set, and the server ends.
        """
        stop, reload = asyncio.Event(), asyncio.Event()
        on_signals(stop, reload)
        try:
            await self.open()
            loading = asyncio.ensure_future(self.load())
            ends = {asyncio.ensure_future(event.wait()) for event in (stop, self._lost)}
            await asyncio.wait({loading, *ends}, return_when=asyncio.FIRST_COMPLETED)
            if loading.done():
                loading.result()
                announcing = asyncio.ensure_future(announce(self))
                following = asyncio.ensure_future(self._models.reloader.follow(reload, self.config.reload_seconds))
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
        """Open the ports; all calls but health checks are answered UNAVAILABLE until the models are loaded.

        Ports for calls that other servers share open when they are: until then those others get all connections.
        """
        self._observers.heartbeat.start()
        await asyncio.to_thread(remove_leftovers)
        self._operators.open()
        self._enter(Phase.LOADING)
        self.calls.check()
        if not self.config.reuse_port:
            await self.calls.open()
        self._watching = asyncio.create_task(self._supervisor.watch())

    async def load(self) -> None:
        await self._models.fleet.load(self.config.load_model if self.config.is_explicit else (ALL,))
        if self._phase is Phase.LOADING:
            self._enter(Phase.RECOVERING if self._supervisor.is_recovering else Phase.SERVING)
            if self.config.reuse_port:
                await self.calls.open()

    async def reload(self) -> ReloadOutcome:
        return await self._models.reloader.reload()

    async def close(self) -> None:
        """Answer every accepted call, then stop. Calls that outlast the grace period are answered UNAVAILABLE."""
        was_serving = self._phase in (Phase.SERVING, Phase.RECOVERING)
        grace_seconds = self.config.grace_seconds
        if self.has_failed:
            grace_seconds = min(grace_seconds, LAST_SECONDS)  # for calls to other models
        elif self._operators.is_open:  # otherwise no port has been opened
            self._enter(Phase.DRAINING)
        if was_serving:
            last_seconds = min(LEAVE_SECONDS, self.config.drain_delay_seconds)
            await asyncio.sleep(self.config.drain_delay_seconds - last_seconds)
            self.calls.set_serving(False)
            await asyncio.sleep(last_seconds)
        await self.calls.drain(grace_seconds)
        if self._watching is not None:
            self._watching.cancel()
        await self._models.stop()
        await self.calls.close()
        await self._observers.close()
        await self._operators.close()

    def on_recovering(self, recovering: bool) -> None:
        if self._phase in (Phase.SERVING, Phase.RECOVERING):
            self._enter(Phase.RECOVERING if recovering else Phase.SERVING)
        elif recovering:  # while draining: watchers have not heard of that
            self.calls.set_serving(False)

    def on_lost(self, reason: str) -> None:
        _LOG.critical("%s The process exits", reason)
        self.has_failed = True
        self._enter(Phase.FAILED)
        self._lost.set()

    def _engine_failed(self, _: BaseException) -> None:
        self._supervisor.wake()

    def _current_phase(self) -> Phase:
        return self._phase

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self.calls.set_serving(phase.is_ready, tells_watchers=phase is not Phase.DRAINING)
        self._metrics.state(ready=phase.is_ready, draining=phase is Phase.DRAINING)
        _LOG.info("the server is %s", phase.value)
