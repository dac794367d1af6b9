"""A server that gets too little memory reports it in one line, whatever it was doing, and by its exit code."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service.cli.errors import ExitCode
from tests.patience import patient
from tests.servers import REPOSITORY, environment

# A server that gets only so many MiB of addresses above what its code takes.
PROGRAM = """
import resource, sys
import service.server.server
from service.cli.main import main
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv.pop(1)) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
main()
"""


@pytest.mark.parametrize(
    "limits_mib", [(1, 300, 560), pytest.param((1, 100, 300, 400, 500, 560, 640), marks=pytest.mark.full)]
)
def test_memory_runs_out_at_the_start(tiny_models: Path, limits_mib: tuple[int, ...]) -> None:
    """At most limits the server reports it. At some, native code gets no memory and ends the process."""
    words = ("serve", "--models", str(tiny_models), "--port", "0", "--metrics-port", "0", "--admin-port", "-1")
    few = ("--num-threads", "1", "--max-slots", "1024")
    num_told = 0
    for mebibytes in limits_mib:
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(mebibytes), *words, *few],
            cwd=REPOSITORY,
            env=environment(),
            capture_output=True,
            timeout=patient(60),
        )
        said = ended.stderr.decode()
        if ended.returncode in (-signal.SIGSEGV, -signal.SIGABRT) and not said:
            continue
        (line,) = said.splitlines()
        assert ended.returncode == ExitCode.CONFIG, line
        assert line.startswith("dragoman: ")
        assert "memory or threads ran out (" in line
        assert not {"CUDA", "export"} & set(line.split())
        num_told += 1
    assert num_told >= len(limits_mib) - 2
