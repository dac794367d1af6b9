"""The image as in production: read-only, no capabilities, little memory, no network except loopback."""

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.image.engine import CommandFailed, ContainerEngine
from tests.servers import REPOSITORY, environment
from tests.tools import tool

MEMORY = 2**30
TCP_LISTEN = "0A"  # of /proc/net/tcp
HARDENED = [
    *("--read-only", "--read-only-tmpfs=false", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    *("--memory", str(MEMORY), "--memory-swap", str(MEMORY), "--pids-limit", "256"),
    *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"),
    *("--health-interval", "disable"),  # these tests probe by hand; automatic checks need systemd
]


class ServerContainer:
    """A container with the server's own defaults except for the given settings; removed when the block ends.

    It has a network of its own, with loopback only: the server has its usual ports and reaches nothing, and `client`
    runs from this machine's files.
    """

    def __init__(
        self, engine: ContainerEngine, image: str, *settings: str, options: tuple[str, ...] = (), network: str = "none"
    ) -> None:
        self._engine = engine
        run = ["run", "--detach", *HARDENED, "--network", network, *options, image, *settings]
        self.started = time.monotonic()
        self.name = engine.podman(*run)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self.logs())
        self._engine.podman("rm", "--force", "--time", "0", self.name)

    def wait_until_healthy(self, timeout_seconds: float = 60.0) -> float:
        """Wait until the image's own HEALTHCHECK succeeds; return the seconds since the start."""
        while not self.is_healthy():
            assert self._inspect("{{.State.Running}}") == "true", f"the server ended:\n{self.logs()}"
            assert time.monotonic() - self.started < timeout_seconds, f"not healthy:\n{self.logs()}"
        return time.monotonic() - self.started

    def is_healthy(self) -> bool:
        try:
            self._engine.podman("healthcheck", "run", self.name)
        except CommandFailed:
            return False
        return True

    def client(self, *command: str) -> "subprocess.Popen[str]":
        """Start a Python of this machine in the server's network, from the repository."""
        enter = [tool("nsenter", "util-linux"), f"--net=/proc/{self.pid}/ns/net"]
        return subprocess.Popen(
            [*enter, sys.executable, *command],
            cwd=REPOSITORY,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, *command: str, timeout_seconds: float = 60.0) -> str:
        """Return the output of a client on this machine."""
        with self.client(*command) as process:
            out, err = process.communicate(timeout=timeout_seconds)
        assert process.returncode == 0, err
        return out

    def signal(self, name: str) -> None:
        self._engine.podman("kill", "--signal", name, self.name)

    def wait(self, timeout_seconds: float = 60.0) -> int:
        """Wait for the exit code."""
        return int(self._engine.podman("wait", self.name, timeout_seconds=timeout_seconds))

    def logs(self) -> str:
        """Return what the server wrote to standard output and standard error."""
        return self._engine.logs(self.name)

    @property
    def pid(self) -> int:
        return int(self._inspect("{{.State.Pid}}"))

    def public_ports(self) -> set[int]:
        """Return the ports on which it listens at all of its addresses, of IPv4 or IPv6."""
        tables = [Path(f"/proc/{self.pid}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
        rows = [line.split() for table in tables for line in table]
        ends = [row[1].split(":") for row in rows if row[3] == TCP_LISTEN]
        return {int(port, 16) for host, port in ends if not int(host, 16)}

    def was_out_of_memory(self) -> bool:
        return self._inspect("{{.State.OOMKilled}}") == "true"

    def peak_memory(self) -> tuple[int, int]:
        """Return the peak bytes so far: all that counts against its limit, file caches included; the server's own."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        (resident,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(_memory_cgroup(self.pid).read_text()), int(resident) * 1024

    def _inspect(self, template: str) -> str:
        return self._engine.podman("inspect", "--format", template, self.name)


def _memory_cgroup(pid: int) -> Path:
    """Return the file with the peak memory of a process's group, of cgroup v1 or v2."""
    groups = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    v1 = [path for _, kinds, path in groups if "memory" in kinds.split(",")]
    if v1:
        return Path(f"/sys/fs/cgroup/memory{v1[0]}/memory.max_usage_in_bytes")
    return Path(f"/sys/fs/cgroup{groups[0][2]}/memory.peak")
