"""The contents of `deploy/`, as data."""

import functools
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from service.observe.metrics import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "rules"
RULE_TESTS = DEPLOY / "prometheus" / "tests"

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
