import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from benchmarks.cpu_times import CpuTimes, cpu_times

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
WORK_SECONDS = 0.3


# A process of its own: in this one, threads that other tests have left may work meanwhile.
ENGINE_THREAD = f"""
import threading, time
from pathlib import Path
worked = threading.Event()
def work():
    Path("/proc/thread-self/comm").write_text("engine-7")
    until = time.thread_time() + {WORK_SECONDS}
    while time.thread_time() < until:
        pass
    worked.set()
    threading.Event().wait(30)
print("ready", flush=True)
input()
threading.Thread(target=work, daemon=True).start()
worked.wait(30)
print("worked", flush=True)
input()
"""


@pytest.fixture
def spent_by_an_engine_thread() -> Iterator[CpuTimes]:
    """The CPU times of a process while a thread of it has worked, and stays."""
    with subprocess.Popen(
        [sys.executable, "-c", ENGINE_THREAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        before = cpu_times(psutil.Process(child.pid))
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"worked\n"
        yield cpu_times(psutil.Process(child.pid)) - before
        child.communicate(b"\n", timeout=30)


def test_the_engines_threads_are_told_from_the_rest(spent_by_an_engine_thread: CpuTimes) -> None:
    spent = spent_by_an_engine_thread
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
