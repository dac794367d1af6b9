"""This machine's access to Python packages for the build's RUN steps: mounted, and never part of the image."""

import ast
import subprocess
import sys
from pathlib import Path

CONFIG = "/etc/pip.conf"
PASSED_ON = ("cert", "extra-index-url", "find-links", "index-url", "proxy", "trusted-host")


def mounts(folder: Path) -> list[str]:
    """Return `--volume` arguments of a build: a pip.conf, written to the folder, and the local files that it names."""
    settings = _settings()
    (folder / "pip.conf").write_text("[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    local = {_local(word) for value in settings.values() for word in value.split()}
    volumes = [f"{folder}/pip.conf:{CONFIG}:ro", *(f"{path}:{path}:ro" for path in sorted(filter(None, local)))]
    return [argument for volume in volumes for argument in ("--volume", volume)]


def _local(word: str) -> Path | None:
    """Return what to mount for a word of a setting: nothing, a file, or the folder around an index with links."""
    path = Path(word.removeprefix("file://"))
    if not (path.is_absolute() and path.exists()):
        return None
    return path.parent if word.startswith("file://") else path


def _settings() -> dict[str, str]:
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    pairs = (line.split("=", 1) for line in told.splitlines())
    settings = {name.rpartition(".")[2]: str(ast.literal_eval(value)) for name, value in pairs}
    return {name: settings[name] for name in PASSED_ON if name in settings}
