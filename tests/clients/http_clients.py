"""The clients that must work over HTTP, unmodified: their environment, and the checks that are run in it."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.patience import patient
from tests.servers import REPOSITORY

PYTHON = REPOSITORY / "build" / "clients" / "bin" / "python"  # `make build/clients/installed`
_RUNNER = Path(__file__).with_name("check_runner.py")


def checks_of(module: str) -> list[str]:
    """Return the names of the checks in a module beside this one."""
    source = _RUNNER.with_name(f"{module}.py").read_text(encoding="utf-8")
    found = re.findall(r"^def (check_\w+)", source, re.MULTILINE)
    assert found, module
    return found


def run_checks(module: str, names: Sequence[str], settings: Mapping[str, object], python: Path) -> dict[str, str]:
    """Run checks of a module in one process, and return why each failed; empty if it did not."""
    seconds = patient(160)
    run = subprocess.run(
        [str(python), str(_RUNNER), str(seconds), module, ",".join(names), json.dumps(settings)],
        capture_output=True,
        text=True,
        timeout=seconds + patient(10),
        check=False,
        env={},
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, str] = json.loads(run.stdout)
    return found
