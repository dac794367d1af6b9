"""Counts of callers' connections on each port: metrics, and a line in the log when there are too many."""

import asyncio
import logging
from collections.abc import Callable

from service.config.server_config import ServerConfig
from service.observe.metrics import Metrics
from service.process.ports import affordable_connections, max_descriptors

_LOG = logging.getLogger(__name__)

_LOOK_SECONDS = 10.0  # gRPC takes a millisecond to list a thousand connections


class ConnectionWatch:
    """Watches the connections of callers' ports. All methods belong to the event loop's thread."""

    def __init__(self, config: ServerConfig, metrics: Metrics) -> None:
        self.most = affordable_connections(config.max_connections, 1 + (config.http_port >= 0))
        self._is_short_of_descriptors = self.most < config.max_connections
        self._metrics = metrics
        self._num_open: dict[str, Callable[[], int]] = {}
        self._refused: set[str] = set()  # since the last look
        self._full: set[str] = set()  # at the last look

    def add(self, protocol: str, num_open: Callable[[], int]) -> None:
        """Watch a port; `num_open` is thread-safe, and is called whenever the metrics are read."""
        self._num_open[protocol] = num_open
        self._metrics.has_connections(protocol, self.most, num_open)

    def refusals(self, protocol: str) -> Callable[[], None]:
        """Return the function to call for each connection that is closed because there are too many."""
        count = self._metrics.connections_refused(protocol)

        def refused() -> None:
            self._refused.add(protocol)
            count()

        return refused

    async def warn(self) -> None:
        while True:
            full = {name for name, num_open in self._num_open.items() if num_open() >= self.most} | self._refused
            for protocol in sorted(full - self._full):
                _LOG.warning(
                    "%s: the limit of %d connections is reached; for each further one, one is closed. Raise %s, or "
                    "find out who holds them: docs/runbooks.md#dragomanconnectionsfull",
                    *(protocol, self.most, self._limit()),
                )
            self._full, self._refused = full, set()
            await asyncio.sleep(_LOOK_SECONDS)

    def _limit(self) -> str:
        return f"'ulimit -n', now {max_descriptors()}" if self._is_short_of_descriptors else "--max-connections"
