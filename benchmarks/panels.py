"""The dashboard's panels, and what they ask Prometheus once Grafana's variables are put in."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DASHBOARD = Path("deploy/grafana/dashboards/dragoman.json")


def by_row(path: Path = DASHBOARD) -> Iterator[tuple[str, dict[str, Any]]]:
    """All panels in the order of their places, each with the title of its row."""
    row = ""
    for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
        else:
            yield row, panel


def expressions(panel: dict[str, Any], *, window: str, shown: str) -> Iterator[str]:
    """A panel's queries, for all servers and models: rates over `window`, and `shown` being the whole time shown."""
    variables = {"__rate_interval": window, "__range": shown, "instance": ".+", "model": ".+"}
    for target in panel["targets"]:
        yield re.sub(r"\$(\w+)", lambda match: variables[match.group(1)], target["expr"])


def metric_names(expression: str) -> set[str]:
    """The metrics and recorded rules that an expression reads."""
    without_strings = re.sub(r'"[^"]*"', '""', expression)
    return set(re.findall(r"\b(?:dragoman|process|python)[_:][\w:]+", without_strings))
