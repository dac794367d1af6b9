"""A server of two worker processes, as tests see it from outside."""

import json

import psutil

from tests.servers import ServerProcess, eventually, http_get, samples

# The kernel chooses a worker for each connection: all choose the same once in 30,000 times.
WORKERS_CONNECTIONS = 16
_GAUGES = ("inflight_requests", "queue_sequences", "queue_tokens", "sequences_running", "slots_running")


def calls_of_workers(process: ServerProcess) -> list[int]:
    """Return how many calls each worker has answered."""
    status = json.loads(http_get(f"http://127.0.0.1:{process.admin_port}/status.json")[2])
    return [worker["calls"] for worker in status["workers"]]


def gauge(process: ServerProcess, name: str) -> float:
    """Return the sum of a gauge over all workers and models."""
    return sum(samples(process.get("/metrics")[2], f"dragoman_{name}"))


class LeftInWorkers:
    """What a server holds beyond what it held when this was created, by the metrics of its workers."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self._at_first = self._held()

    def more(self) -> dict[str, float]:
        """Return, by name, what has grown since the beginning."""
        now = self._held()
        return {name: now[name] - before for name, before in self._at_first.items() if now[name] > before}

    def check_nothing(self, seconds: float) -> None:
        """Wait until there is no more than at the beginning; `seconds` is on a machine that is not busy."""
        try:
            eventually(lambda: not self.more(), seconds)
        except AssertionError:
            raise AssertionError(f"left behind: {self.more()}") from None

    def memory_mib(self) -> float:
        """Return the resident memory of all processes, shared pages once for each."""
        server = psutil.Process(self._process.process.pid)
        return float(sum(each.memory_info().rss for each in (server, *server.children()))) / 2**20

    def _held(self) -> dict[str, float]:
        return {name: gauge(self._process, name) for name in (*_GAUGES, "event_loop_tasks")}
