"""What Helm renders of deploy/helm/dragoman, as data."""

import functools
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.patience import patient
from tests.servers import REPOSITORY
from tests.tools import built_file

CHART = REPOSITORY / "deploy" / "helm" / "dragoman"
IMAGE = {"image": {"repository": "registry.invalid/dragoman"}}


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
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def refusal(values: Mapping[str, Any], *arguments: str) -> str:
    """Return why Helm does not render the chart with these values; empty if it does."""
    stdin = json.dumps(merged(IMAGE, values))
    answer = helm("template", "dragoman", str(CHART), "-f", "-", *arguments, stdin=stdin)
    return answer.stderr if answer.returncode else ""
