"""The parent's side of an engine's process, which is stopped between its turns."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from benchmarks.peers.peer import PeerSettings
from benchmarks.workload import Task

CLOSE_SECONDS = 60.0


class PeerFailed(Exception):
    """An engine's process ended; its last output is on the terminal."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One task's seconds and outputs."""

    seconds: float
    outputs: list[list[int]]

    @property
    def num_tokens(self) -> int:
        """Return the number of generated tokens, without end-of-sentence tokens."""
        return sum(map(len, self.outputs))


class PeerProcess:
    """An engine in a separate process, stopped between tasks, because its threads may spin and would disturb others."""

    def __init__(self, settings: PeerSettings) -> None:
        """Start the process; the first task waits until it has loaded."""
        self.settings = settings
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.peers.worker", json.dumps(dataclasses.asdict(settings))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **settings.environment},
        )
        self._answer()
        self._process.send_signal(signal.SIGSTOP)

    def run(self, task: Task) -> Timing:
        """Time the task in the process.

        Raises:
            PeerFailed: the process ended.
        """
        self._process.send_signal(signal.SIGCONT)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(dataclasses.asdict(task)) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        self._process.send_signal(signal.SIGSTOP)
        return Timing(answer["seconds"], answer["outputs"])

    def close(self) -> None:
        """Wait for the process to end; kill it if it does not."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.communicate(timeout=CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> "PeerProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerFailed(f"{self.settings.label()} ended with status {self._process.wait()}.")
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer
