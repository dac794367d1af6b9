"""Supervision of forked processes, in a program that does nothing else (`supervised.py`)."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from service.process.backoff import MAX_RESTARTS
from tests.patience import patient
from tests.servers import REPOSITORY, environment, eventually, read_line

# On a slow machine a process is silent for longer while it starts.
HUNG_SECONDS = 2 + math.ceil(patient(1.0))  # a supervisor that slept counts 2 s of that (`Presence`)

Supervise = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator[Supervise]:
    programs: list[subprocess.Popen[str]] = []

    def run(*kinds: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.unit.process.supervised", str(tmp_path), str(HUNG_SECONDS), *kinds]
        pipe = subprocess.PIPE
        programs.append(
            subprocess.Popen(command, cwd=REPOSITORY, env=environment(), stdout=pipe, stderr=pipe, text=True)
        )
        return programs[-1]

    yield run
    for program in programs:
        program.kill()
        program.communicate(timeout=patient(30))
    for path in tmp_path.iterdir():
        pid = int(path.read_text() or 0)  # 0: killed before it was written
        if pid and psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)


def ended(program: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = program.communicate(timeout=patient(30))
    return program.returncode, out, err


def test_all_end_when_told_and_the_last_one_last(supervise: Supervise, tmp_path: Path) -> None:
    program = supervise("last", "steady")
    assert read_line(program) == "ready ['last', 'steady']\n"
    steady = int((tmp_path / "steady.0").read_text())
    program.send_signal(signal.SIGTERM)
    assert ended(program)[:2] == (0, "the last one stops\n")
    assert not psutil.pid_exists(steady)


def test_one_that_can_not_start_ends_all_with_its_code_and_words(supervise: Supervise) -> None:
    code, out, _ = ended(supervise("steady", "broken"))
    assert code == 78
    assert "it is broken." in out
    assert "mend it" in out
    code, out, _ = ended(supervise("silent", "steady"))
    assert code == 3
    assert "silent ended with exit code 3 before it was ready." in out


def test_one_that_is_killed_is_started_again(supervise: Supervise, tmp_path: Path) -> None:
    program = supervise("steady")
    read_line(program)
    for number in range(3):
        path = tmp_path / f"steady.{number}"
        eventually(lambda path=path: path.exists() and path.read_text() != "")  # type: ignore[misc]
        os.kill(int(path.read_text()), signal.SIGKILL)
    eventually((tmp_path / "steady.3").exists)
    program.send_signal(signal.SIGTERM)
    code, _, err = ended(program)
    assert code == 0
    assert err.count("steady was ended by signal 9") == 3  # maybe before it was ready


def test_one_that_hangs_is_killed_and_started_again(supervise: Supervise, tmp_path: Path) -> None:
    program = supervise("beating", "loading", "steady")
    read_line(program)
    os.kill(int((tmp_path / "loading.0").read_text()), signal.SIGSTOP)
    eventually((tmp_path / "loading.1").exists)
    program.send_signal(signal.SIGTERM)
    code, _, err = ended(program)
    assert code == 0
    assert err.count("hangs") == 1, "neither one that loads nor one that never beats"
    assert f"loading hangs: it has not run for {HUNG_SECONDS} s; killing it" in err
    assert "loading was ended by signal 9" in err


def test_a_supervisor_that_slept_ends_nobody(supervise: Supervise, tmp_path: Path) -> None:
    program = supervise("beating", "loading")
    read_line(program)
    beating, loading = (int((tmp_path / f"{name}.0").read_text()) for name in ("beating", "loading"))
    for pid in (program.pid, beating, loading):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2 * HUNG_SECONDS)  # twice as long as one may be silent
    for pid in (program.pid, beating, loading):
        os.kill(pid, signal.SIGCONT)
    os.kill(loading, signal.SIGSTOP)  # positive control
    eventually((tmp_path / "loading.1").exists)
    program.send_signal(signal.SIGTERM)
    code, _, err = ended(program)
    assert (code, err.count("hangs")) == (0, 1)


def test_several_failed_starts_end_all(supervise: Supervise, tmp_path: Path) -> None:
    program = supervise("once", "steady")
    read_line(program)
    os.kill(int((tmp_path / "once.0").read_text()), signal.SIGKILL)
    code, out, _ = ended(program)
    assert code == os.EX_SOFTWARE
    assert f"once could not be started {MAX_RESTARTS} times in a row; the last time: " in out
    assert len(list(tmp_path.glob("once.*"))) == 1 + MAX_RESTARTS


def test_what_does_not_end_in_time_is_killed(supervise: Supervise) -> None:
    program = supervise("stubborn", "steady")
    read_line(program)
    program.send_signal(signal.SIGINT)
    code, _, err = ended(program)
    assert code == os.EX_SOFTWARE
    assert "processes that did not end within 1 s are killed" in err


def test_a_second_signal_kills_all(supervise: Supervise) -> None:
    program = supervise("stubborn")
    read_line(program)
    assert program.stderr is not None
    program.send_signal(signal.SIGTERM)
    while "SIGTERM: stopping" not in program.stderr.readline():
        pass
    program.send_signal(signal.SIGTERM)
    assert ended(program)[0] == 128 + signal.SIGTERM
