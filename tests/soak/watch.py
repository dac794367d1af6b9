"""Regular sampling of a server from outside: the process, its metrics, its status page."""

import threading
import time
from dataclasses import dataclass, field
from urllib.request import urlopen

import psutil
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.servers import RunningServer
from tests.patience import patient

TIMEOUT_SECONDS = patient(30.0)
# Modules whose processes read one document, or try one bundle, and end.
SHORT_LIVED = {"service.documents.child", "service.models.trial_process"}
# Until a new process has loaded its own program it has its parent's command line, and its parent's memory once more.
NEW_SECONDS = 2.0
GAUGES = {
    "tasks": "dragoman_event_loop_tasks",
    "inflight": "dragoman_inflight_requests",
    "queue": "dragoman_queue_sequences",
    "running": "dragoman_sequences_running",
    "slots": "dragoman_slots_running",
}


@dataclass(slots=True)
class Series:
    """Samples; `seconds` are from the start, `others_cpus` are CPUs used by everything except the server."""

    seconds: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, seconds: float, sample: dict[str, float]) -> None:
        self.seconds.append(seconds)
        for name, value in sample.items():
            self.values.setdefault(name, []).append(value)

    def since(self, seconds: float) -> "Series":
        """Return the samples from then on."""
        first = next((i for i, each in enumerate(self.seconds) if each >= seconds), len(self.seconds))
        return Series(self.seconds[first:], {name: values[first:] for name, values in self.values.items()})


class Watch:
    """A thread that samples until it is closed. Each page that cannot be read is recorded in `failures`."""

    def __init__(self, server: RunningServer, started: float, interval_seconds: float) -> None:
        """Count seconds from `started`, on `time.monotonic()`'s clock."""
        self.series = Series()
        self.failures: list[str] = []
        self._server, self._started, self._interval = server, started, interval_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(3 * TIMEOUT_SECONDS)

    def _run(self) -> None:
        busy, own, then = _busy_seconds(), self._server.cpu_seconds(), time.monotonic()
        while not self._ended.wait(self._interval):
            try:
                sample = sample_of(self._server)
                for page in ("", "status.json"):
                    read(self._server.status_url + page)
            except Exception as error:  # any error is a finding
                self.failures.append(f"a page can't be read: {error!r}")
                continue
            new_busy, new_own, now = _busy_seconds(), self._server.cpu_seconds(), time.monotonic()
            sample["others_cpus"] = max((new_busy - busy - (new_own - own)) / (now - then), 0.0)
            busy, own, then = new_busy, new_own, now
            self.series.add(now - self._started, sample)


def sample_of(server: RunningServer) -> dict[str, float]:
    """Return the server's present state, with its child processes."""
    totals = metrics_of(server)
    held = [held_by(process) for process in (server.process, *server.process.children(recursive=True))]
    rss, threads, descriptors = (float(sum(values)) for values in zip(*held, strict=True))
    return {
        "rss_mib": rss / 2**20,
        "threads": threads,
        "descriptors": descriptors,
        **{name: totals.get(metric, 0.0) for name, metric in GAUGES.items()},
    }


def held_by(process: psutil.Process) -> tuple[int, int, int]:
    """Return a process's memory, threads and descriptors; none of one that is new, or ends with what it is for."""
    try:
        is_new = time.time() - process.create_time() < NEW_SECONDS
        if is_new or not SHORT_LIVED.isdisjoint(process.cmdline()):
            return 0, 0, 0
        return process.memory_info().rss, process.num_threads(), process.num_fds()
    except psutil.NoSuchProcess:
        return 0, 0, 0


def metrics_of(server: RunningServer) -> dict[str, float]:
    """Return every metric as a sum over its labels."""
    totals: dict[str, float] = {}
    for family in text_string_to_metric_families(read(server.metrics_url)):
        for each in family.samples:
            totals[each.name] = totals.get(each.name, 0.0) + each.value
    return totals


def codes_of(server: RunningServer) -> dict[str, float]:
    """Return finished calls by status, as the server counts them."""
    codes: dict[str, float] = {}
    for family in text_string_to_metric_families(read(server.metrics_url)):
        for each in family.samples:
            if each.name == "dragoman_requests_total":
                codes[each.labels["code"]] = codes.get(each.labels["code"], 0.0) + each.value
    return codes


def read(url: str) -> str:
    with urlopen(url, timeout=TIMEOUT_SECONDS) as response:
        text: str = response.read().decode()
    return text


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0))
