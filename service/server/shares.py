"""How several worker processes divide what the settings allow the whole server, and the folder that they share.

What takes memory or threads is divided, and rounded up; what limits a single call or connection is not. Quotas of API
keys count in each process on its own.
"""

import os
from dataclasses import replace
from pathlib import Path

from service.config.server_config import ServerConfig
from service.engine.cpus import available_cpus
from service.faces.http.listener import UNIX
from service.process.temporary_folder import TemporaryFolder, remove_leftovers

_CPUS_PER_WORKER = 4  # one interpreter prepares texts for about as many threads that decode
_MAX_SOCKET_BYTES = 107  # of a socket's path, on Linux
_DIVIDED = ("max_slots", "max_waiting", "cache_mib", "max_connections", "max_bytes_in_flight_mib")


def num_workers(config: ServerConfig) -> int:
    """Return how many processes should serve: as set, or chosen from the CPUs that this process may use."""
    if config.workers:
        return config.workers
    return 1 if config.device != "cpu" else max(1, (config.num_threads or available_cpus()) // _CPUS_PER_WORKER)


def share_of(config: ServerConfig, number: int, count: int, folder: Path) -> ServerConfig:
    """Return the settings of worker `number` of `count`, with its HTTP listeners on sockets in `folder`."""
    threads = config.num_threads or available_cpus()
    divided = {name: -(-getattr(config, name) // count) for name in _DIVIDED}
    return replace(
        config,
        metrics_host=f"{UNIX}{metrics_socket(folder, number)}",
        admin_host=f"{UNIX}{admin_socket(folder, number)}",
        admin_port=0,
        num_threads=max(1, threads // count + (number < threads % count)),
        workers=1,
        **divided,
    )


def metrics_socket(folder: Path, number: int) -> Path:
    """Return where worker `number` answers what others ask at the metrics port."""
    return folder / f"worker-{number}.metrics"


def documents_folder(folder: Path) -> Path:
    """Return where documents are that callers may fetch from any worker."""
    return folder / "documents"


def front_socket(folder: Path) -> Path:
    """Return where the front answers operators' calls, which concern all workers."""
    return folder / "front.admin"


def admin_socket(folder: Path, number: int) -> Path:
    """Return where worker `number` answers operators' calls, which concern this worker only."""
    return folder / f"worker-{number}.admin"


class FolderUnusable(Exception):
    """There is no folder for what the workers share. The message is for the user."""


def new_folder(count: int) -> TemporaryFolder:
    """Make a folder for the sockets and the documents of `count` workers, which only this user may use.

    What servers have left that were killed is removed.
    """
    remove_leftovers()
    made = TemporaryFolder()
    try:
        folder = made.path()
    except OSError as error:
        reason = f"{error.strerror}; set TMPDIR to a folder that this user may write to"
        raise FolderUnusable(f"workers need a folder for temporary files: {reason}.") from error
    longest = max(len(os.fsencode(path(folder, count - 1))) for path in (metrics_socket, admin_socket))
    if longest > _MAX_SOCKET_BYTES:
        made.remove()
        most = _MAX_SOCKET_BYTES - longest + len(os.fsencode(folder.parent))
        raise FolderUnusable(
            f"workers can't have sockets in {folder.parent}: its path is too long; "
            f"set TMPDIR to a folder with a path of at most {most} bytes."
        )
    return made
