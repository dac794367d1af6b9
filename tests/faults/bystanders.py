"""What attacks on a server must not affect: its memory, and a caller of small texts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Self

import psutil

from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, environment, read_line

# A small call is answered within this time whatever else happens, even on a busy machine; an idle server takes 10 ms.
HEALTHY_SECONDS = patient(10.0)


class Peak:
    """The peak memory that a process has taken since, in MiB, beyond what it had."""

    def __init__(self, process: ServerProcess) -> None:
        self._folder = Path(f"/proc/{process.process.pid}")
        (self._folder / "clear_refs").write_text("5")  # resets the peak
        self._before = self._most()

    def grown(self) -> float:
        return self._most() - self._before

    def _most(self) -> float:
        (line,) = (each for each in (self._folder / "status").read_text().splitlines() if each.startswith("VmHWM"))
        return int(line.split()[1]) / 1024


def cpu_seconds(server: ServerProcess) -> float:
    """Return the CPU time that a server has taken, without its child processes."""
    times = psutil.Process(server.process.pid).cpu_times()
    return float(times.user + times.system)


class SmallCaller:
    """Calls continuously with one short sentence, from a process of its own."""

    def __init__(self, address: str, api_key: str = "") -> None:
        self.seconds: list[float] = []  # durations of its calls, once it has been stopped
        command = [sys.executable, "-m", "tests.faults.small_caller", address, api_key]
        self._process = subprocess.Popen(
            command, cwd=REPOSITORY, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert read_line(self._process).strip() == "ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate(timeout=patient(10))

    def stop(self) -> None:
        out, _ = self._process.communicate("stop\n", timeout=patient(180))
        self.seconds = sorted(json.loads(out))
        assert self.seconds[-1] < HEALTHY_SECONDS

    def p99_seconds(self) -> float:
        return self.seconds[len(self.seconds) * 99 // 100]
