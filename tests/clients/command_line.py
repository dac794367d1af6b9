"""The command line within the tests' process, which takes a tenth of the time of one of its own."""

import gc
import os
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from click.testing import CliRunner

from service.cli.main import run


def dragoman_here(
    *arguments: str, stdin: bytes | None = None, **variables: str
) -> "subprocess.CompletedProcess[bytes]":
    """Run the command line as `tests.servers.dragoman` does, where nothing of the process itself is tested."""
    unset = dict.fromkeys(name for name in os.environ if name.startswith("DRAGOMAN_"))
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings(action="ignore", category=ResourceWarning))
        stack.enter_context(_standard_input(stdin or b""))  # which stays open, as other inputs, until a process ends
        output, errors, _ = stack.enter_context(CliRunner().isolation(env=unset | variables))
        code = run([str(each) for each in arguments])
        if code:
            gc.collect()  # the error, whose frames hold the input
        return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


@contextmanager
def _standard_input(data: bytes) -> Iterator[None]:
    """Let the descriptor 0, from which the commands read, lead to a file with these bytes."""
    kept = os.dup(0)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        os.dup2(file.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)
