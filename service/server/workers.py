"""Several processes that serve as one: they share the gRPC port, and a supervisor starts, restarts and stops them.

The supervisor imports what they need before it forks them, so that they share these pages of memory. It has no thread
but its own, and starts nothing of gRPC or ONNX Runtime: neither survives a fork. Each worker is a `Server` with its
share of the limits.
"""

import gc
import importlib
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from service.config.server_config import ServerConfig
from service.process.forked import Parent
from service.process.ports import reserve_port
from service.process.supervision import Role, Supervision
from service.server.shares import admin_socket, metrics_socket, share_of

# Beyond the time that a worker takes by its settings, however it is stopped.
_STOP_SECONDS = 30.0

RunWorker = Callable[[ServerConfig, str, Parent], int]


def run_workers(config: ServerConfig, count: int, run: RunWorker, announce: Callable[[str], None]) -> int:
    """Serve with `count` workers until they are stopped; return the exit code.

    `run` is called in each worker with its settings, its name and its connection to this process; it returns the
    worker's exit code, and reports when it is ready. `announce` is called once all are, with the first one's text.

    Raises:
        PortError: the port can't be listened on.
        ChildFailed: see `Supervision.run`.
    """
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))  # for this user only
    try:
        with reserve_port(config.host, config.port, "gRPC", "--port") as reserved:
            port: int = reserved.getsockname()[1]
            shares = [share_of(config, number, count, port, folder) for number in range(count)]
            roles = [Role(_name(n), partial(_run, run, share, folder, n)) for n, share in enumerate(shares)]
            importlib.import_module("service.server.server")
            gc.collect()
            gc.freeze()  # a collection would write to the pages that all share
            stop_seconds = config.drain_delay_seconds + config.grace_seconds + _STOP_SECONDS
            return Supervision(roles, lambda texts: announce(texts[_name(0)]), stop_seconds, [reserved]).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(run: RunWorker, share: ServerConfig, folder: Path, number: int, parent: Parent) -> int:
    for path in (metrics_socket(folder, number), admin_socket(folder, number)):
        path.unlink(missing_ok=True)  # of a predecessor that was killed
    return run(share, _name(number), parent)


def _name(number: int) -> str:
    return f"worker-{number}"
