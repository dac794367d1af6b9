"""The dashboard's panels, and their Prometheus queries with Grafana's variables substituted."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DASHBOARD = Path("deploy/grafana/dashboards/dragoman.json")


def by_row(path: Path = DASHBOARD) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all panels in the order of their positions, each with the title of its row."""
    row = ""
    for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
        else:
            yield row, panel


def expressions(panel: dict[str, Any], *, window: str, shown: str) -> Iterator[str]:
    """Yield a panel's queries for all servers and models: rates over `window`; `shown` is the whole time range."""
    variables = {"__rate_interval": window, "__range": shown, "namespace": ".*", "instance": ".+", "model": ".+"}
    for target in panel["targets"]:
        yield re.sub(r"\$(\w+)", lambda match: variables[match.group(1)], target["expr"])


def metric_names(expression: str) -> set[str]:
    """Return the metrics and recording rules that an expression reads."""
    without_strings = re.sub(r'"[^"]*"', '""', expression)
    return set(re.findall(r"\b(?:dragoman|process|python)[_:][\w:]+", without_strings))
