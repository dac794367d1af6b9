"""A real registry of images and charts: Debian's, on a free port of loopback."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.servers import TIMEOUT_SECONDS, eventually, free_port, http_get
from tests.tools import tool


@contextlib.contextmanager
def registry(folder: Path) -> Iterator[str]:
    """Run a registry with its data in the folder; yield its address."""
    port = free_port()
    settings = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "registry")}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    (folder / "registry.yml").write_text(yaml.safe_dump(settings))
    command = [tool("docker-registry", "docker-registry"), "serve", str(folder / "registry.yml")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _answers(f"http://127.0.0.1:{port}/v2/"))
        yield f"localhost:{port}"
    finally:
        process.kill()
        process.wait(TIMEOUT_SECONDS)


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError):
        return http_get(url)[0] == 200
    return False
