"""The records in build/reliability: which promise was proved by what, with how many cases, when, at which commit."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.patience import patient
from tests.servers import REPOSITORY

PROVED = REPOSITORY / "build" / "reliability"
Proved = Callable[..., None]  # the fixture `proved`


def write_proof(
    path: Path, *, promise: str, cases: int, failures: int, numbers: dict[str, float], test: str, form: str, **more: Any
) -> None:
    """Write one record; `form` is `short` or `long`, with `_fused` on fused graphs;
    `test` is a path in the repository or pytest's name of a test."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "promise": promise,
        "cases": cases,
        "failures": failures,
        "numbers": numbers,
        "test": test,
        "form": form,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": _commit(),
    }
    path.write_text(json.dumps(record | more, indent=None if more else 2) + "\n")


def _commit() -> str:
    command = ["git", "-C", str(REPOSITORY), "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patient(30))
    return found.stdout.strip() or "unknown"
