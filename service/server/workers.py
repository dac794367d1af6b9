"""Several processes that serve as one: they share the gRPC port, and a supervisor starts, restarts and stops them.

The supervisor imports what they need before it forks them, so that they share these pages of memory. It has no thread
but its own, and starts nothing of gRPC or ONNX Runtime: neither survives a fork. Each worker is a `Server` with its
share of the limits.
"""

import asyncio
import gc
import importlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from service.config.server_config import ServerConfig
from service.process.forked import Parent
from service.process.lifecycle import Heartbeat, on_parent
from service.process.ports import reserve_port
from service.process.supervision import Role, Supervision
from service.server.front import run_front
from service.server.shares import (
    admin_socket,
    documents_folder,
    front_socket,
    metrics_socket,
    new_folder,
    share_of,
)
from service.server.worker import Worker, endpoints

# Beyond the time that a worker takes by its settings, however it is stopped.
_STOP_SECONDS = 30.0

# Runs a server until it is stopped. The first settings are those with its share of the limits, the others those of the
# whole.
RunServer = Callable[[ServerConfig, ServerConfig, Worker], None]
# Does the work of the process of this name, reports a failure to its parent, and returns the exit code.
Guarded = Callable[[str, Parent, Callable[[], None]], int]


def run_workers(
    config: ServerConfig, count: int, run_server: RunServer, guarded: Guarded, announce: Callable[[str], None]
) -> int:
    """Serve with `count` workers until they are stopped; return the exit code.

    `run_server` and `guarded` are called in the forked processes; `announce` here, once all are ready, with the text
    that the first worker has reported.
    """
    made = new_folder(count)
    folder = made.path()
    try:
        with ExitStack() as stack:
            wanted = [("port", config.host, "gRPC", "--port")]
            wanted.append(("metrics_port", config.metrics_host, "metrics", "--metrics-port"))
            if config.admin_port >= 0:
                wanted.append(("admin_port", config.admin_host, "the status page", "--admin-port"))
            if config.http_port >= 0:
                wanted.append(("http_port", config.http_host, "calls over HTTP", "--http-port"))
            reserved = {
                name: stack.enter_context(reserve_port(host, getattr(config, name), purpose, flag))
                for name, host, purpose, flag in wanted
            }
            documents_folder(folder).mkdir(mode=0o700)
            whole = replace(config, **{name: socket.getsockname()[1] for name, socket in reserved.items()})

            def serve(number: int, parent: Parent) -> None:
                for path in (metrics_socket(folder, number), admin_socket(folder, number)):
                    path.unlink(missing_ok=True)  # of a predecessor that was killed
                run_server(share_of(whole, number, count, folder), whole, Worker(number, count, folder, parent))

            def run(name: str, work: Callable[[Parent], None], parent: Parent) -> int:
                return guarded(name, parent, partial(work, parent))

            names = [f"worker-{number}" for number in range(count)]
            roles = [Role(name, partial(run, name, partial(serve, number))) for number, name in enumerate(names)]
            answer = partial(_answer_for, whole, count, folder)
            roles.append(Role("front", partial(run, "front", answer), stays_last=True))
            importlib.import_module("service.server.server")
            gc.collect()
            gc.freeze()  # a collection would write to the pages that all share
            stop_seconds = config.drain_delay_seconds + config.grace_seconds + _STOP_SECONDS
            to_close = list(reserved.values())
            return Supervision(roles, lambda texts: announce(texts[names[0]]), stop_seconds, to_close).run()
    finally:
        made.remove()


def _answer_for(whole: ServerConfig, count: int, folder: Path, parent: Parent) -> None:
    """Run the front of the workers until the parent stops it. It has nothing to reload."""

    async def answer() -> None:
        stop = asyncio.Event()
        on_parent(parent, stop, reload=asyncio.Event(), orphaned=asyncio.Event())
        Heartbeat(on_beat=parent.beat).start()
        front_socket(folder).unlink(missing_ok=True)  # of a predecessor that was killed
        await run_front(whole, endpoints(folder, count), stop, lambda _: parent.is_ready(""), front_socket(folder))

    asyncio.run(answer())
