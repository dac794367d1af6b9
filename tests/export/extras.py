"""What each extra of pyproject.toml installs, and a process that finds no other packages."""

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement

from tests.patience import patient
from tests.servers import REPOSITORY

# Imports of packages that none of the given distributions has fail, as if they were not installed.
_ONLY = """
import json, sys
hidden = frozenset(json.loads(sys.argv.pop(1)))

class Hidden:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden)
"""
EXPORT = "from export.cli import main; main(sys.argv[1:])"


@cache
def packages_of(extras: str) -> frozenset[str]:
    """Return the names to import of what `pip install '.[EXTRAS]'` installs, with all that it depends on."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    waiting = [*project["dependencies"], *(each for extra in extras.split(",") for each in optional[extra])]
    reached: dict[str, set[str]] = {}
    while waiting:
        needed = Requirement(waiting.pop())
        of_ours = needed.name == "dragoman"
        new = {"", *needed.extras} - reached.setdefault(_normal(needed.name), set())
        reached[_normal(needed.name)] |= new
        for extra in new:
            if of_ours:
                waiting += optional.get(extra, ())
            else:
                waiting += _requirements(needed.name, extra)
    return frozenset(name for name, owners in _owners().items() if not reached.keys().isdisjoint(owners))


@cache
def _owners() -> dict[str, list[str]]:
    found = importlib.metadata.packages_distributions()
    return {name: [_normal(each) for each in owners] for name, owners in found.items()}


@cache
def _requirements(name: str, extra: str) -> list[str]:
    try:
        requirements = importlib.metadata.requires(name) or ()
    except importlib.metadata.PackageNotFoundError:  # for another system; or of an extra that is not installed here
        return []
    parsed = map(Requirement, requirements)
    return [str(each) for each in parsed if each.marker is None or each.marker.evaluate({"extra": extra})]


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def run_with_only(extras: str, code: str, arguments: Iterable[str | Path]) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process that finds no installed package but those of the extras; `sys` is imported."""
    hidden = json.dumps(sorted(_owners().keys() - packages_of(extras) - {"service", "export", "dragoman_client"}))
    command = [sys.executable, "-c", _ONLY + code, hidden, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=patient(60))
