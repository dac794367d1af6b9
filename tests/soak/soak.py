"""Runs a soak: the server, its clients, and the disturbances; collects the data to judge.

The expected answers are those that each call gets on an otherwise idle server, from either version of each model. Then
client processes call at half the measured maximum rate, over all APIs of gRPC and over HTTP, with cancelled calls, bad
input and reconnects, while versions come and go on disk, clients are killed, and metrics and status page are read. It
lasts for the time that it is given, and longer on a machine that has not done enough by then.
"""

import asyncio
import contextlib
import json
import math
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import click
import grpc
import psutil

from benchmarks.measures import percentile
from benchmarks.servers import RunningServer, running, serve_command
from service.bundle.manifest import Manifest
from tests.mixed_calls import MixedCall, Model, Place, glossary_of
from tests.patience import patient
from tests.soak.answers import Answer, Asked, ask
from tests.soak.caller import Traffic
from tests.soak.judge import floor_growth, judge, p99_of_thirds, slope_error_per_minute, slope_per_minute
from tests.soak.reloads import SECOND, Reloads, put_all
from tests.soak.watch import Series, Watch, codes_of, sample_of

NUM_CLIENTS = 2
LOAD_SHARE = 0.5
MIN_RATE = 4.0  # calls per second, where the maximum could not be measured: a short run on a slow machine
MIN_CALLS = 80  # a short run continues until there are that many
MIN_RELOADS = 2  # and that many steps
CALLS_AT_ONCE = 16  # while the maximum is measured
MOST_CALLS_AT_ONCE = CALLS_AT_ONCE // NUM_CLIENTS  # of a client: a slow machine must not become overloaded
ALONE_SECONDS = patient(60.0)
STOP_SECONDS = patient(60.0)
LATE_SECONDS = patient(90.0)  # after the time that it is given: it has done enough; after that: nothing waits
WARM_SHARE = 0.2  # of the time: caches and pools fill up
MAX_TOLD = 20
JUDGED_KIND = "one"  # shown by the progress line and the picture
# A small cache, so that it is soon full and keeps evicting old entries.
FLAGS = ("--cache-mib", "4", "--admin-port", "0", "--reload-seconds", "7", "--grace-seconds", "60")


class Client:
    """A client process; its reports are kept with their arrival times on `time.monotonic()`'s clock."""

    def __init__(self, traffic: Traffic) -> None:
        given = json.dumps({each.name: getattr(traffic, each.name) for each in fields(traffic)})
        command = [sys.executable, "-m", "tests.soak.caller", given]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.reports: list[tuple[float, dict[str, Any]]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait(self) -> None:
        """Wait until it calls.

        Raises:
            ClickException: it does not start calling.
        """
        end = time.monotonic() + STOP_SECONDS
        while not self.reports:
            if self.process.poll() is not None or time.monotonic() > end:
                raise click.ClickException("a client did not start; its message is above.")
            time.sleep(0.02)

    def stop(self) -> int:
        """Stop new calls, wait for those in progress, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(LATE_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        self._reader.join(STOP_SECONDS)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(json.JSONDecodeError):  # it was killed mid-line
                self.reports.append((time.monotonic(), json.loads(line)))


@dataclass(slots=True)
class Outcome:
    """The measurements; `findings` is what is wrong. `series` is all samples, `warm` those after the warm-up."""

    series: Series
    warm: Series
    latencies: dict[str, list[tuple[float, float]]]
    num_calls: int = 0
    num_failures: int = 0
    held_back: int = 0
    capacity: float = 0.0
    rate: float = 0.0
    num_reloads: int = 0
    num_killed: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def numbers(self) -> dict[str, float]:
        """Return the numbers for the report."""
        memory = self.warm.values["rss_mib"]
        first, _, last = p99_of_thirds(self.latencies.get(JUDGED_KIND, []))
        p99 = {} if math.isnan(first + last) else {"p99_first_ms": first, "p99_last_ms": last}
        growth = {
            f"{name}_growth": floor_growth(self.warm.values[name]) for name in ("threads", "descriptors", "tasks")
        }
        return {
            "wrong_answers": float(self.num_failures),
            "rss_slope_mib_per_minute": slope_per_minute(self.warm.seconds, memory),
            "rss_slope_error": slope_error_per_minute(self.warm.seconds, memory),
            "rss_first_mib": memory[0],
            "rss_last_mib": memory[-1],
            **growth,
            **p99,
            "calls_per_second": self.rate,
            "most_calls_per_second": self.capacity,
            "held_back": float(self.held_back),
            "reloads": float(self.num_reloads),
            "killed_clients": float(self.num_killed),
            **{f"code_{code}": float(count) for code, count in sorted(self.codes.items())},
        }

    def picture_series(self) -> dict[str, Any]:
        """Return samples, and the 99th percentile over short windows, as plain lists."""
        calls = self.latencies.get(JUDGED_KIND, [])
        size = max(len(calls) // 60, 100)
        windows = [calls[i : i + size] for i in range(0, len(calls) - size + 1, size)]
        return {
            "seconds": [round(each, 1) for each in self.series.seconds],
            **{name: [round(each, 2) for each in values] for name, values in self.series.values.items()},
            "p99_seconds": [round(window[-1][0], 1) for window in windows],
            "p99_ms": [round(percentile([ms for _, ms in window], 0.99), 1) for window in windows],
            "warm_seconds": self.warm.seconds[0] if self.warm.seconds else 0.0,
        }


Versions = tuple[Sequence[Path], Sequence[Path]]


class Soak:
    def __init__(
        self,
        place: Path,
        answers: Path,
        versions: Versions,
        seconds: float,
        plant: str,
        log_folder: Path,
        most_rate: float,
    ) -> None:
        """Take `place`, a folder that is empty or in which only `answered_alone` has worked, and a file of `save`."""
        self._most_rate = most_rate
        self._place, self._versions, self._seconds = place, versions, seconds
        self._log = log_folder / "soak-server.log"
        self._answers = answers
        put_all(versions[0], place / "models", "1")
        self._command = serve(place / "models", _glossaries(place, versions[0]), *FLAGS)
        if plant:
            self._command[1:3] = ["-m", "tests.soak.planted_server", plant]

    def run(self) -> Outcome:
        """Run the soak and judge it."""
        findings: list[str] = []
        with self._log.open("wb") as log, running(self._command, log) as server:
            capacity = self._capacity(server)
            before = sample_of(server)
            outcome = self._soak(server, capacity, findings)
            findings += _left_over(server, before)
            server.process.send_signal(signal.SIGTERM)
            try:
                if code := server.process.wait(STOP_SECONDS):
                    findings.append(f"the server ended with {code} on SIGTERM; expected 0.")
            except psutil.TimeoutExpired:
                findings.append(f"the server did not end within {STOP_SECONDS:g} s of SIGTERM.")
        findings += _log_lines(self._log)
        outcome.findings = findings + judge(outcome.warm.seconds, outcome.warm.values, outcome.latencies)
        return outcome

    def _capacity(self, server: RunningServer) -> float:
        """Measure the highest useful rate of the same mix in calls per second; this also warms up the server."""
        seconds = min(max(self._seconds / 20, 1.5), 20.0)
        client = Client(self._traffic(server, 0.0, 0, CALLS_AT_ONCE))
        try:
            client.wait()
            time.sleep(seconds)
            client.stop()
        finally:
            client.kill()
        return _num_calls([client]) / float(client.reports[-1][1]["seconds"])

    def _soak(self, server: RunningServer, capacity: float, findings: list[str]) -> Outcome:
        rate = min(max(LOAD_SHARE * capacity, MIN_RATE), self._most_rate)
        click.echo(
            f"The most is about {capacity:.0f} calls/s; {rate:.0f} calls/s for {self._seconds / 60:.1f} minutes."
        )
        clients = [
            Client(self._traffic(server, rate / NUM_CLIENTS, 1 + number, MOST_CALLS_AT_ONCE))
            for number in range(NUM_CLIENTS)
        ]
        for client in clients:
            client.wait()
        started = time.monotonic()
        watch = Watch(server, started, min(max(self._seconds / 100, 0.2), 5.0))
        reloads = Reloads(server, self._place / "models", self._versions[1])
        try:
            num_killed = self._disturb(server, reloads, clients, watch, started, rate)
            findings += [f"a client ended with {code}; expected 0." for client in clients if (code := client.stop())]
        except TimeoutError as error:
            findings.append(str(error))
            num_killed = 0
        finally:
            for client in clients:
                client.kill()
            watch.close()
        warm_seconds = WARM_SHARE * self._seconds
        reports = sorted(
            ((when - started, report) for client in clients for when, report in client.reports),
            key=lambda each: each[0],
        )
        outcome = Outcome(watch.series, watch.series.since(warm_seconds), _latencies(reports, warm_seconds))
        outcome.capacity, outcome.rate = capacity, rate
        outcome.num_reloads, outcome.num_killed = reloads.count, num_killed
        for _, report in reports:
            outcome.num_calls += sum(report["calls"].values())
            outcome.num_failures += report["failures"]
            outcome.held_back += report["held_back"]
            outcome.codes.update(report["codes"])
        if outcome.num_failures:
            told = [each for _, report in reports for each in report["told"]][:MAX_TOLD]
            findings.append(f"{outcome.num_failures} of {outcome.num_calls} calls were answered wrong.")
            findings += [json.dumps(each, ensure_ascii=False)[:2000] for each in told]
        findings += watch.failures[:MAX_TOLD]
        return outcome

    def _disturb(
        self,
        server: RunningServer,
        reloads: Reloads,
        clients: Sequence[Client],
        watch: Watch,
        started: float,
        rate: float,
    ) -> int:
        """Reload, kill clients and report progress until the time is over; return how many clients were killed."""
        period = min(max(self._seconds / 20, 2.5), 30.0)  # several rounds of all steps: memory must not seem to grow
        num_killed, due, told, seen = 0, started + period, started, 0
        doomed: Client | None = None
        try:
            while (now := time.monotonic()) < started + self._seconds or (
                (_num_calls(clients) < MIN_CALLS or reloads.count < MIN_RELOADS)
                and now < started + self._seconds + LATE_SECONDS
            ):
                if now >= due:
                    due = now + period
                    if doomed is not None:  # in the middle of its calls
                        doomed.kill()
                        num_killed += 1
                    doomed = Client(self._traffic(server, rate / 4, 100 + num_killed, MOST_CALLS_AT_ONCE))
                    reloads.step()
                    if num_killed % 2:
                        doomed.kill()
                        num_killed, doomed = num_killed + 1, None
                if now - told >= 60:
                    told = now
                    seen = _tell(started, clients, watch.series, seen)
                if any(client.process.poll() is not None for client in clients):
                    raise TimeoutError("a client ended before its time; its message is above.")
                time.sleep(0.05)
        finally:
            if doomed is not None:
                doomed.kill()
        return num_killed

    def _traffic(self, server: RunningServer, rate: float, seed: int, most_at_once: int) -> Traffic:
        return Traffic(server.address, server.http_url, str(self._answers), rate, most_at_once, seed)


def serve(models: Path, glossaries: Path, *flags: str) -> list[str]:
    return serve_command(str(models), "--glossaries", str(glossaries), "--http-port", "0", *flags)


def model_of(bundle: Path) -> Model:
    manifest = Manifest.load(bundle)
    return Model(manifest.name, manifest.first_pair.source_language_code, manifest.first_pair.target_language_code)


def answered_alone(calls: Sequence[MixedCall], versions: Versions, place: Path) -> list[Asked]:
    """Return each call's answer when it is the only one, by the version that answers."""
    glossaries = _glossaries(place, versions[0])
    expected: list[dict[str, Answer]] = [{} for _ in calls]
    for version, bundles in zip(("1", SECOND), versions, strict=True):
        models = place / f"only-{version}"
        put_all(bundles, models, version)
        with running(serve(models, glossaries)) as server:
            for answers, answer in zip(expected, asyncio.run(_ask_all(server, calls)), strict=True):
                answers[version] = answer
    for call, answers in zip(calls, expected, strict=True):
        for answer in answers.values():
            if (answer.code == "OK") == (call.kind == "bad"):
                raise click.ClickException(f"a call of the kind {call.kind!r} ended with {answer.code}: {call}")
    return [Asked(call, answers) for call, answers in zip(calls, expected, strict=True)]


async def _ask_all(server: RunningServer, calls: Sequence[MixedCall]) -> list[Answer]:
    async with grpc.aio.insecure_channel(server.address) as channel:
        return [await ask(Place(channel, server.http_url), call, ALONE_SECONDS) for call in calls]


def _glossaries(place: Path, bundles: Sequence[Path]) -> Path:
    folder = place / "glossaries"
    folder.mkdir(exist_ok=True)
    for bundle in bundles:
        name, content = glossary_of(model_of(bundle))
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def _latencies(
    reports: Sequence[tuple[float, dict[str, Any]]], warm_seconds: float
) -> dict[str, list[tuple[float, float]]]:
    latencies: dict[str, list[tuple[float, float]]] = {}
    for seconds, report in reports:
        if seconds >= warm_seconds:
            for kind, milliseconds in report["milliseconds"].items():
                latencies.setdefault(kind, []).extend((seconds, each) for each in milliseconds)
    return latencies


def _num_calls(clients: Sequence[Client]) -> int:
    return sum(sum(report["calls"].values()) for client in clients for _, report in list(client.reports))


def _tell(started: float, clients: Sequence[Client], series: Series, seen: int) -> int:
    """Print the progress; return how many calls there have been."""
    time_now = time.monotonic()
    reports = [report for client in clients for _, report in list(client.reports)]
    latest = [report for client in clients for when, report in list(client.reports) if when > time_now - 60]
    num_calls = _num_calls(clients)
    failures = sum(report["failures"] for report in reports)
    p99 = percentile([ms for report in latest for ms in report["milliseconds"].get(JUDGED_KIND, [])], 0.99)
    now = {name: values[-1] for name, values in series.values.items()}
    click.echo(
        f"{(time_now - started) / 60:4.0f} min  {num_calls} calls ({(num_calls - seen) / 60:.0f}/s), {failures} wrong, "
        f"p99 {p99:.0f} ms, {now['rss_mib']:.0f} MiB, {now['threads']:.0f} threads, "
        f"{now['descriptors']:.0f} descriptors, {now['tasks']:.0f} tasks, others use {now['others_cpus']:.1f} CPUs"
    )
    return num_calls


def _left_over(server: RunningServer, before: dict[str, float]) -> list[str]:
    """Return what still waits, runs or is held although there are no more calls."""
    end = time.monotonic() + LATE_SECONDS
    while True:
        now = sample_of(server)
        left = [
            f"{name} is {now[name]:.0f} when all calls have ended; expected 0."
            for name in ("inflight", "queue", "running", "slots")
            if now[name]
        ]
        if now["tasks"] > before["tasks"]:
            left.append(
                f"{now['tasks']:.0f} tasks are left when all calls have ended; before it were {before['tasks']:.0f}."
            )
        if not left or time.monotonic() > end:
            break
        time.sleep(0.2)
    codes = codes_of(server)
    return left + [f"{codes[code]:.0f} calls ended with {code}." for code in ("INTERNAL", "UNKNOWN") if code in codes]


def _log_lines(log: Path) -> list[str]:
    """Return log lines that a healthy server does not write; reloads and damaged bundles are expected."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    odd = [line for line in lines if "is damaged" not in line and "models were reloaded" not in line]
    return [f"in the server's log: {line}" for line in odd[:MAX_TOLD]]
