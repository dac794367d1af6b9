"""Servers forked from one process that share their weights, as `--workers` will, but each with ports of its own.

`python -m benchmarks.forked_servers MODELS COUNT` prints one ready line with all addresses, and ends on SIGTERM.
"""

import asyncio
import gc
import os
import signal
import sys
import tempfile
from pathlib import Path

from service.config.server_config import ServerConfig
from service.server.server import Server

COMMAND = (sys.executable, "-m", "benchmarks.forked_servers")


def main() -> None:
    """Fork, announce, wait."""
    models, count = Path(sys.argv[1]), int(sys.argv[2])
    config = ServerConfig(models=models, port=0, metrics_port=0, admin_port=-1)
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        gc.collect()
        gc.freeze()
        read, write = os.pipe()
        children = [pid for _ in range(count) if (pid := _fork(config, Path(folder), write))]
        os.close(write)

        def stop(*_: object) -> None:
            for pid in children:
                os.kill(pid, signal.SIGTERM)

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        with os.fdopen(read) as ready:
            addresses = [ready.readline().strip() for _ in children]
        print(f"Ready: gRPC on {','.join(addresses)}. ", flush=True)
        for pid in children:
            os.waitpid(pid, 0)


def _fork(config: ServerConfig, folder: Path, write: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    asyncio.run(_serve(config, folder, write))
    os._exit(0)


async def _serve(config: ServerConfig, folder: Path, write: int) -> None:
    async def announce(server: Server) -> None:
        os.write(write, f"127.0.0.1:{server.port}\n".encode())

    await Server(config, shared_weights=folder).run(announce)


if __name__ == "__main__":
    main()
