"""Which processes' memory is the server's: a short soak on a busy machine finds a leak only in what stays."""

import subprocess
import sys

import psutil
import pytest

from tests.patience import patient
from tests.soak import watch


@pytest.mark.parametrize(
    ("arguments", "new_seconds", "is_counted"),
    [
        pytest.param((), 0.0, True, id="a worker"),
        pytest.param((), patient(60.0), False, id="one that has just begun"),
        pytest.param(("-m", "service.models.trial_process"), 0.0, False, id="one that tries a bundle"),
        pytest.param(("-m", "service.documents.child"), 0.0, False, id="one that reads a document"),
    ],
)
def test_only_processes_that_stay_are_counted(
    arguments: tuple[str, ...], new_seconds: float, is_counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "NEW_SECONDS", new_seconds)
    command = [sys.executable, "-c", "input(chr(10))", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # its own program runs
        held = watch.held_by(psutil.Process(process.pid))
        process.communicate(b"\n")
    assert (held > (0, 0, 0)) == is_counted
