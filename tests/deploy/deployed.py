"""The contents of `deploy/`, as data."""

import functools
import importlib.util
import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from service.observe.metrics import Metrics
from tests.patience import patient
from tests.tools import tool

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "rules"
DASHBOARD = DEPLOY / "grafana" / "dashboards" / "dragoman.json"
RULE_TESTS = DEPLOY / "prometheus" / "tests"

Series = list[dict[str, str]]
Samples = list[dict[str, Any]]

ONLY_WITH_TLS = {"dragoman_tls_certificate_not_after_seconds"}


def loaded(script: Path) -> ModuleType:
    """Return a script as a module."""
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rules(kind: str, folder: Path = RULES) -> list[dict[str, Any]]:
    """Return all rules with a key `kind`: `alert` or `record`."""
    groups = [group for path in sorted(folder.glob("*.yml")) for group in read(path)["groups"]]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


def promtool(
    expression: str,
    cases: Iterable[tuple[Series, Samples]],
    minutes: int,
    folder: Path,
    rules: Sequence[Path] = (),
    interval: str = "15s",
) -> str:
    """Return what promtool complains of: answers of an expression, after so many minutes, that are not the samples.

    Files of rules are evaluated in their order, as often as series have values.
    """
    tests = [
        {
            "interval": interval,
            "input_series": series,
            "promql_expr_test": [{"expr": expression, "eval_time": f"{minutes}m", "exp_samples": samples}],
        }
        for series, samples in cases
    ]
    written = {
        "rule_files": [str(path) for path in rules],
        "evaluation_interval": interval,
        "group_eval_order": [group["name"] for path in rules for group in read(path)["groups"]],
        "tests": tests,
    }
    (folder / "test.yml").write_text(yaml.safe_dump(written))
    command = [tool("promtool", "prometheus"), "test", "rules", str(folder / "test.yml")]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=patient(60))
    return "" if answer.returncode == 0 else answer.stdout + answer.stderr


@functools.cache
def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@functools.cache
def known_metrics() -> set[str]:
    """Return the names of all series that a server or a recording rule produces."""
    types = re.findall(r"^# TYPE (\S+) (\S+)$", Metrics().render()[0].decode(), re.MULTILINE)
    names = {name for name, _ in types}
    names |= {
        f"{name}_{suffix}" for name, kind in types if kind == "histogram" for suffix in ("bucket", "sum", "count")
    }
    return names | {rule["record"] for rule in rules("record")} | ONLY_WITH_TLS


def all_panels() -> list[dict[str, Any]]:
    """Return all panels of the dashboard, without the titles of rows."""
    return [panel for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"] if panel["type"] != "row"]


def expressions(panel: dict[str, Any], *, window: str, shown: str) -> Iterator[str]:
    """Yield a panel's queries for all servers and models: rates over `window`; `shown` is the whole time range."""
    variables = {"__rate_interval": window, "__range": shown, "instance": ".+", "model": ".+"}
    variables |= dict.fromkeys(("namespace", "deployment", "pool"), ".*")
    for target in panel["targets"]:
        yield re.sub(r"\$(\w+)", lambda match: variables[match.group(1)], target["expr"])


def metric_names(expression: str) -> set[str]:
    """Return the metrics and recording rules that an expression reads."""
    without_strings = re.sub(r'"[^"]*"', '""', expression)
    return set(re.findall(r"\b(?:dragoman|process|python)[_:][\w:]+", without_strings))
