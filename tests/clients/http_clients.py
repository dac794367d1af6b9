"""The clients that must work over HTTP, unmodified: their environment, and the checks that are run in it."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.calls.keys import Quotas, key_lines
from tests.http_caller import call
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess
from tests.tiny_bundle import write_tiny_bundle

PYTHON = REPOSITORY / "build" / "clients" / "bin" / "python"  # `make build/clients/installed`
_RUNNER = Path(__file__).with_name("check_runner.py")


def checks_of(module: str) -> list[str]:
    """Return the names of the checks in a module beside this one."""
    source = _RUNNER.with_name(f"{module}.py").read_text(encoding="utf-8")
    found = re.findall(r"^def (check_\w+)", source, re.MULTILINE)
    assert found, module
    return found


def run_checks(
    module: str, settings: Mapping[str, object], python: Path = PYTHON, timeout_seconds: float = 100
) -> dict[str, str]:
    """Run all of a module's checks by the clients' own Python, and return why each failed; empty if it did not."""
    seconds = patient(timeout_seconds)
    run = subprocess.run(
        [str(python), str(_RUNNER), str(seconds), module, json.dumps(settings)],
        capture_output=True,
        text=True,
        timeout=seconds + patient(10),
        check=False,
        env={},
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, str] = json.loads(run.stdout)
    return found


def translated(server: ServerProcess, text: str, **options: Any) -> str:
    """Return what our own API answers."""
    asked = {"text": text, "source_language_code": "en", "target_language_code": "de", **options}
    [translation] = call(server.http_url, "POST", "/v1/translate", asked).document["translations"]
    return str(translation["text"])


def triton_models(versions: Path, folder: Path) -> tuple[Path, Path]:
    """Return two folders of models: `tiny` in versions 1 and 2, and `many`; and one without the second version."""
    models, fewer = folder / "models", folder / "fewer"
    write_tiny_bundle(fewer / "many" / "1", "many", seed=9, among="fr it es pt")
    shutil.copytree(versions / "1", fewer / "tiny" / "1")
    shutil.copytree(fewer, models)
    shutil.copytree(versions / "2", models / "tiny" / "2")
    return models, fewer


def write_keys(folder: Path, **keys: tuple[str, Quotas]) -> Path:
    """Write a file of API keys, each with its quotas, by name."""
    path = folder / "keys.toml"
    path.write_text("".join(key_lines(key, name, None, quotas) for name, (key, quotas) in keys.items()))
    path.chmod(0o600)
    return path
