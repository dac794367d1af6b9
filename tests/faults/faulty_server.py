"""`dragoman` with faults on demand: `python -m tests.faults.faulty_server serve ...`.

The present content of the file named by FAULT_FILE selects the fault: with "hang", runs of the model never return, and
the first of them creates a file of the same name ending in ".met"; with "raise", they fail; with "limit N", from the
next run on the process gets no more than N MiB of addresses above what it has; with "stuck", the disk does not answer
when the server removes its temporary files. Without the file, nothing differs.
"""

import contextlib
import os
import resource
import threading
from pathlib import Path

from service.cli.main import main as dragoman
from service.engine.runtime.session import Binding, GraphSession
from service.models import supervisor
from service.process.disk import TemporaryFolder

FAULT_FILE = "FAULT_FILE"


def main() -> None:
    file = Path(os.environ[FAULT_FILE])
    run, remove = GraphSession.run, TemporaryFolder.remove

    def selected() -> str:
        with contextlib.suppress(FileNotFoundError):
            return file.read_text()
        return ""

    def hang() -> None:
        file.with_suffix(".met").touch()
        threading.Event().wait()

    def faulty_remove(folder: TemporaryFolder) -> None:
        if selected() == "stuck":
            hang()
        remove(folder)

    def faulty_run(session: GraphSession, binding: Binding) -> None:
        fault = selected()
        if fault == "hang":
            hang()
        if fault == "raise":
            raise RuntimeError("device lost")
        if fault.startswith("limit"):
            file.unlink(missing_ok=True)
            limit = _address_bytes() + int(fault.split()[1]) * 2**20
            resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        run(session, binding)

    GraphSession.run = faulty_run  # type: ignore[assignment, method-assign]
    TemporaryFolder.remove = faulty_remove  # type: ignore[assignment, method-assign]
    supervisor.FIRST_DELAY_SECONDS = 0.001
    supervisor.ENGINE_STOP_SECONDS = 1.0  # type: ignore[attr-defined]
    dragoman()


def _address_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main()
