"""Python programs that tests run in processes of their own."""

import subprocess
import sys

from tests.patience import patient
from tests.servers import REPOSITORY


def output_of(program: str, *arguments: object) -> str:
    """Return what a program prints; it has to succeed within a minute."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    run = subprocess.run(command, cwd=REPOSITORY, timeout=patient(60), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout
