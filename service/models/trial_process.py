"""A process that tries one bundle for `trial.py`: `python -m service.models.trial_process`.

Reads one line, the order in JSON, ends with its input, and writes a line per opened graph, and the bundle's `problem`
in JSON, maybe empty.
"""

import contextlib
import json
import logging
import os
import resource
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn, TextIO

from service.bundle.errors import one_line
from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.runtime import session
from service.engine.runtime.session import SessionConfig
from service.models.loader import try_model
from service.models.repository import FoundBundle
from service.models.trial import digest_of

_OUT_OF_MEMORY = "1000"  # the first process that the system ends when memory runs out


def main() -> NoReturn:
    with os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace") as sink:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries print
        order = json.loads(sys.stdin.buffer.readline())
        _limit(order["cpu_seconds"])
        threading.Thread(target=_end_with_server, daemon=True).start()
        _report_graphs(sink)
        print(json.dumps({"problem": _problem(order)}), file=sink, flush=True)
    os._exit(os.EX_OK)  # nothing is worth cleaning up


def _problem(order: dict[str, Any]) -> str:
    directory = Path(order["directory"])
    try:
        manifest = Manifest.load(directory)
        if digest_of(manifest) != order["digest"]:
            return f"{directory} was replaced while it was being loaded."
        bundle = FoundBundle(directory, order["version"], manifest, frozenset())
        try_model(bundle, EngineConfig(**order["engine"]), SessionConfig(**order["session"]))
    except Exception as error:  # whatever it is, the server would have met it
        return one_line(error)
    return ""


def _limit(cpu_seconds: int) -> None:
    # A second after the signal that says why comes the one that can't be ignored.
    limits = ((resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1), (resource.RLIMIT_CORE, 0, 0))
    for kind, soft, hard in limits:
        with contextlib.suppress(OSError, ValueError):  # lower ones are in force already, or the system has none
            resource.setrlimit(kind, (soft, hard))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OUT_OF_MEMORY, encoding="ascii")
    os.nice(10)  # below all that serves calls


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(os.EX_UNAVAILABLE)


def _report_graphs(sink: TextIO) -> None:
    logger = logging.getLogger(session.__name__)
    logger.addHandler(logging.StreamHandler(sink))
    logger.setLevel(logging.DEBUG)


if __name__ == "__main__":
    main()
