"""The front of a server of several workers: what answers on its public HTTP ports, for all of them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.config.server_config import ServerConfig
from service.faces.admin.routes import admin_listener, routed
from service.faces.front.metrics import WorkersMetrics
from service.faces.front.monitoring import pages
from service.faces.front.operators import WorkersOperators
from service.faces.front.worker import WorkerEndpoint
from service.faces.http.application import application, on_loop
from service.faces.http.listener import UNIX, HttpListener
from service.faces.http.monitoring import monitoring


@dataclass(frozen=True, slots=True)
class FrontPorts:
    """The ports that are open; the admin port is -1 if the server has none."""

    metrics: int
    admin: int


async def run_front(
    config: ServerConfig,
    workers: Sequence[WorkerEndpoint],
    stop: asyncio.Event,
    announce: Callable[[FrontPorts], None],
    changes: Path | None = None,
) -> None:
    """Answer scrapers, probes and operators until `stop` is set; call `announce` when the ports are open.

    At the socket `changes` workers have changes made that they are called for, as operators have at the admin port.
    Works in a process of its own or in one with other work: requests arrive on the listeners' threads, and everything
    else happens on the event loop that runs this. The workers may come later than the front.
    """
    loop = asyncio.get_running_loop()
    metrics = WorkersMetrics(workers)
    answer = on_loop(monitoring(pages(workers, metrics), config.metrics_host), loop)
    listeners = [
        HttpListener(config.metrics_host, config.metrics_port, "metrics", "--metrics-port", application(answer))
    ]
    try:
        answer = on_loop(routed(WorkersOperators(config, workers, metrics), config.admin_host), loop)
        if config.admin_port >= 0:
            listeners.append(admin_listener(config.admin_host, config.admin_port, answer, config.max_request_bytes))
        admin_port = listeners[1].port if listeners[1:] else -1
        if changes is not None:
            listeners.append(admin_listener(f"{UNIX}{changes}", 0, answer, config.max_request_bytes))
        for listener in listeners:
            listener.start()
        announce(FrontPorts(listeners[0].port, admin_port))
        await stop.wait()
    finally:
        await asyncio.gather(*(asyncio.to_thread(listener.stop) for listener in listeners))
