import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.cpu_times import CpuTimes, cpu_figures, cpu_times
from benchmarks.load_generator import Outcome

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
WORK_SECONDS = 0.3


@pytest.fixture
def engine_thread() -> Iterator[CpuTimes]:
    """A thread that has worked and stays; yields the CPU times before it."""
    worked, ended = threading.Event(), threading.Event()

    def work() -> None:
        Path("/proc/thread-self/comm").write_text("engine-7")
        until = time.thread_time() + WORK_SECONDS
        while time.thread_time() < until:
            pass
        worked.set()
        ended.wait(30)

    before = cpu_times(psutil.Process())
    thread = threading.Thread(target=work)
    thread.start()
    assert worked.wait(30)
    yield before
    ended.set()
    thread.join(30)


def test_the_engines_threads_are_told_from_the_rest(engine_thread: CpuTimes) -> None:
    spent = cpu_times(psutil.Process()) - engine_thread
    assert spent.engine == pytest.approx(WORK_SECONDS, abs=0.05)
    assert spent.outside < WORK_SECONDS / 2


def test_children_count() -> None:
    work = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    command = [sys.executable, "-c", work]
    before = cpu_times(psutil.Process())
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        spent = cpu_times(psutil.Process()) - before
        child.communicate(b"\n", timeout=30)
    assert spent.total >= 0.25


def test_milliseconds_are_of_each_call() -> None:
    outcome = Outcome(calls=[(0.0, 0.1, "OK", 5)] * 100, cpu_seconds=0.05, wall_seconds=2.0)
    found = cpu_figures(CpuTimes(engine=0.5, outside=0.25), outcome)
    assert found == {
        "server_cpus": 0.375,
        "client_cpus": 0.025,
        "server_ms_per_call": 7.5,
        "outside_ms_per_call": 2.5,
        "client_ms_per_call": 0.5,
    }


def test_a_server_without_engine_threads_is_not_split() -> None:
    found = cpu_figures(CpuTimes(engine=0.0, outside=0.25), Outcome(wall_seconds=1.0))
    assert "outside_ms_per_call" not in found
