"""A server that gets too little memory says so in one line, whatever it was doing, and by its exit code."""

import subprocess
import sys
from pathlib import Path

import pytest

from service.cli import exit_codes
from tests.servers import REPOSITORY, environment

# A server that gets no more than so many MiB of addresses above what its code takes.
PROGRAM = """
import resource, sys
import service.server
from service.cli.main import main
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv.pop(1)) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
main()
"""


@pytest.mark.parametrize("mebibytes", [1, 100, 500, 600])
def test_memory_runs_out_at_the_start(tiny_models: Path, mebibytes: int) -> None:
    words = ("serve", "--models", str(tiny_models), "--port", "0", "--metrics-port", "0", "--admin-port", "-1")
    few = ("--num-threads", "1", "--max-slots", "1024")
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(mebibytes), *words, *few],
        cwd=REPOSITORY,
        env=environment(),
        capture_output=True,
        timeout=60,
    )
    (line,) = ended.stderr.decode().splitlines()
    assert ended.returncode == exit_codes.CONFIG, line
    assert line.startswith("dragoman: ")
    assert "memory or threads ran out (" in line
    assert not {"CUDA", "export"} & set(line.split())
