"""What Helm renders of deploy/helm/dragoman, as data."""

import functools
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.patience import patient
from tests.servers import REPOSITORY
from tests.tools import built_file

CHART = REPOSITORY / "deploy" / "helm" / "dragoman"
IMAGE = {"image": {"repository": "registry.invalid/dragoman"}}


class _Loader(yaml.CSafeLoader):
    """Refuses a key that an object has twice, as other tools for YAML do."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        assert len(set(keys)) == len(keys), f"{keys} has one twice, {node.start_mark}"
        return super().construct_mapping(node, deep)


def program() -> Path:
    """Return Helm's path."""
    return built_file(REPOSITORY / "build" / "helm" / "helm", "build/helm/installed")


def helm(*arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    """Run Helm until it exits."""
    return subprocess.run(
        [program(), *arguments], input=stdin, capture_output=True, text=True, timeout=patient(60), check=False
    )


def merged(*several: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all, those of later ones in place of earlier ones."""
    found: dict[str, Any] = {}
    for values in several:
        for key, value in values.items():
            known = found.get(key)
            found[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, Mapping) else value
    return found


@functools.cache
def _rendered(release: str, chart: str, values: str, arguments: tuple[str, ...]) -> str:
    answer = helm("template", release, chart, "--namespace", "dragoman", "-f", "-", *arguments, stdin=values)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def chart_documents(
    values: Mapping[str, Any], *arguments: str, release: str = "dragoman", chart: str = str(CHART)
) -> list[dict[str, Any]]:
    """Render the chart with these values and an image."""
    text = _rendered(release, chart, json.dumps(merged(IMAGE, values)), arguments)
    return [document for document in yaml.load_all(text, _Loader) if document]


def refusal(values: Mapping[str, Any], *arguments: str, release: str = "dragoman") -> str:
    """Return why Helm does not render the chart with these values; empty if it does."""
    answer = helm("template", release, str(CHART), *arguments, "-f", "-", stdin=json.dumps(merged(IMAGE, values)))
    return answer.stdout + answer.stderr if answer.returncode else ""


def linted(sets: Sequence[Mapping[str, Any]], folder: Path) -> list[str]:
    """Return what Helm's linter says of the chart with each of these values, in one process.

    Values are written to copies of the chart, as the linter has one set of them for all charts.
    """
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    charts = [folder / str(number) / "dragoman" for number in range(len(sets))]
    for chart, values in zip(charts, sets, strict=True):
        shutil.copytree(CHART, chart)
        (chart / "values.yaml").write_text(json.dumps(_without_nulls(merged(defaults, IMAGE, values))))
    answer = helm("lint", "--strict", *map(str, charts))
    _, *told = answer.stdout.split("==> Linting ")
    assert len(told) == len(sets), answer.stdout + answer.stderr
    return told


def _without_nulls(values: Any) -> Any:
    """Leave out what a site removes from the defaults."""
    if not isinstance(values, dict):
        return values
    return {name: _without_nulls(value) for name, value in values.items() if value is not None}
