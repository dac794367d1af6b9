"""The dashboard's panels, and their Prometheus queries with Grafana's variables substituted."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DASHBOARD = Path("deploy/grafana/dashboards/dragoman.json")


def all_panels(path: Path = DASHBOARD) -> list[dict[str, Any]]:
    """Return all panels, without the titles of rows."""
    return [panel for panel in json.loads(path.read_text(encoding="utf-8"))["panels"] if panel["type"] != "row"]


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
