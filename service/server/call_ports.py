"""The ports of callers, gRPC's and HTTP's: what answers there, from their opening to the last answer."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from service.calls.gate import Gate
from service.calls.open_calls import OpenCalls
from service.calls.pipeline import CallPipeline
from service.config.server_config import ServerConfig
from service.faces.dragoman.grpc import dragoman_api
from service.faces.google.grpc import google_api
from service.faces.grpc.health import HealthServicer
from service.faces.grpc.intake import Memory
from service.faces.grpc.open_connections import num_connections
from service.faces.grpc.server import NEVER_OPEN, build_grpc_server
from service.faces.grpc.tls import tls_of
from service.faces.http.listener import CallListener
from service.faces.http.routes import Routes
from service.faces.kserve.grpc import kserve_api
from service.faces.kserve.methods import KServeMethods
from service.process.disk import TemporaryFolder
from service.process.lifecycle import LAST_SECONDS, Phase
from service.process.ports import PortError, check_port, join_address
from service.server.connection_watch import ConnectionWatch
from service.server.model_loading import Models
from service.server.observing import Observers
from service.server.reloading import follow_files

if TYPE_CHECKING:
    from service.jobs.background import BackgroundWork

_LOG = logging.getLogger(__name__)


class CallPorts:
    """The ports of callers. All methods belong to the event loop's thread."""

    def __init__(
        self,
        config: ServerConfig,
        models: Models,
        observers: Observers,
        phase: Callable[[], Phase],
    ) -> None:
        self.port = config.port
        self.http_port = config.http_port
        self.routes: Routes | None = None  # of the HTTP port, once it is open
        self._config = config
        self._translator = translator = models.translator
        self._metrics = observers.metrics
        self._phase = phase
        self._memory = memory = Memory.of(config.max_bytes_in_flight_mib * 2**20, config.max_request_bytes)
        self._metrics.memory_for_calls(memory.max_bytes, lambda: memory.num_bytes)
        self._tls = tls_of(config)
        self._gate = None if config.api_keys is None else Gate(config.api_keys, self._metrics)
        self.pipeline = CallPipeline(self._metrics, observers.calls, translator.overload, self._gate)
        self._folder = TemporaryFolder()  # for documents that callers fetch later
        self._closing = asyncio.Event()
        self._open_calls = OpenCalls(ignored=NEVER_OPEN)
        self._kserve = KServeMethods(translator, models.control, phase)
        deadline_seconds = config.default_deadline_seconds
        apis = (
            dragoman_api(translator, deadline_seconds),
            google_api(translator, deadline_seconds),
            kserve_api(self._kserve, self.pipeline, self._closing, deadline_seconds, memory.held),
        )
        self._health = HealthServicer([api.name for api in apis])
        self._connections = ConnectionWatch(config, self._metrics)
        self._grpc = build_grpc_server(
            config, apis, self.pipeline, self._open_calls, self._health, memory, self._connections.most
        )
        self._http: CallListener | None = None
        self._watching: list[asyncio.Task[None]] = []
        self._background: BackgroundWork | None = None
        self._stopping: asyncio.Future[None] | None = None
        self._dropping: asyncio.Task[None] | None = None

    def set_serving(self, is_serving: bool, *, tells_watchers: bool = True) -> None:
        self._health.set_serving(is_serving, tells_watchers=tells_watchers)

    def check(self) -> None:
        config = self._config
        check_port(config.host, config.port, "gRPC", "--port", is_shared=config.reuse_port)

    async def open(self) -> None:
        address = join_address(self._config.host, self._config.port)
        try:
            if self._tls:
                self.port = self._grpc.add_secure_port(address, self._tls.credentials())
            else:
                self.port = self._grpc.add_insecure_port(address)
        except RuntimeError as error:
            raise PortError(f"can't listen on {address} for gRPC: {error}") from error
        await self._grpc.start()
        self._connections.add("grpc", num_connections)
        if self._config.http_port >= 0:
            self._http = http = self._http_listener()
            self._connections.add("http", lambda: http.num_connections)
            self.http_port = self._http.port
            self._http.start()
        self._watching.append(asyncio.create_task(self._connections.warn()))
        if self._tls or self._gate:
            following = follow_files(self._tls, self._gate, self._metrics, self._translator)
            self._watching.append(asyncio.create_task(following))

    def _http_listener(self) -> CallListener:
        # Imported here: many modules, which a server without this port does not need.
        from service.jobs.background import BackgroundWork
        from service.jobs.keeper import DocumentKeeper
        from service.server.http_calls import call_listener, routes_of

        self._background = BackgroundWork(self.pipeline, self._open_calls)
        kept = DocumentKeeper(self._folder.path)
        self.routes = routes_of(self._config, self._translator, self._kserve, self.pipeline, self._background, kept)
        return call_listener(
            self._config,
            self.routes,
            self.pipeline,
            self._open_calls,
            self._memory.held,
            self._closing.is_set,
            lambda: self._phase() is Phase.DRAINING or self._closing.is_set(),
            self._tls.context() if self._tls else None,
            self._connections.most,
            self._connections.refusals("http"),
        )

    async def drain(self, grace_seconds: float) -> None:
        """Take no new calls, and wait until the accepted ones are answered, but not longer than `grace_seconds`."""
        for task in self._watching:
            task.cancel()
        self._health.close()
        self._closing.set()
        # A call whose engine is stopped still gets its answer.
        self._stopping = asyncio.ensure_future(self._grpc.stop(grace_seconds + LAST_SECONDS))
        self._dropping = asyncio.create_task(self._drop_silent())
        answering = asyncio.create_task(self._open_calls.none_for(0.0))
        _, late = await asyncio.wait({self._stopping, answering}, timeout=grace_seconds)
        answering.cancel()
        if late:
            _LOG.warning("calls did not finish within the grace period of %g s and are aborted", grace_seconds)

    async def close(self) -> None:
        """Close the ports once the last answers are sent, after `drain`."""
        if self._stopping is not None and self._dropping is not None:
            await self._stopping
            self._dropping.cancel()
        if self._background is not None:
            await self._background.close()
        if self._http is not None:
            await self._http.stop()
        await asyncio.to_thread(self._folder.remove)

    async def _drop_silent(self) -> None:
        """End gRPC's stop once all open calls are answered; it would wait for messages and silent peers, too."""
        await self._open_calls.none_for(LAST_SECONDS)
        await self._grpc.stop(None)
