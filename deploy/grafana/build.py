"""Writes the Grafana dashboard of what `panels.py` tells in short: `python -m deploy.grafana.build`."""

import json
from pathlib import Path
from typing import Any

from deploy.grafana.panels import INSTALLATION, ROWS, SERVERS, Panel

DASHBOARD = Path(__file__).with_name("dashboards") / "dragoman.json"

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana 11 and 12 take it."""
    return {
        "uid": "dragoman",
        "title": "Dragoman",
        "description": "The translation server: what callers get, and what the engine does.",
        "tags": ["dragoman"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "annotations": {"list": [_restarts()]},
        "links": [],
        "templating": {"list": _variables()},
        "panels": _panels(),
    }


def text() -> str:
    """What `DASHBOARD` should hold."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


def _restarts() -> dict[str, Any]:
    return {
        "name": "Restarts",
        "datasource": _SOURCE,
        "enable": True,
        "iconColor": "purple",
        "target": {"refId": "Anno", "expr": f"changes(process_start_time_seconds{{{SERVERS}}}[1m]) > 0"},
        "titleFormat": "restart of {{instance}}",
    }


def _variables() -> list[dict[str, Any]]:
    everything = {"selected": True, "text": ["All"], "value": ["$__all"]}
    choice = {"type": "query", "datasource": _SOURCE, "refresh": 2, "sort": 1, "includeAll": True, "multi": True}
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        *(
            {
                "name": name,
                "label": name.capitalize(),
                "query": f"label_values(dragoman_ready{{{selector}}}, {name})",
                "allValue": ".*",  # outside of Kubernetes there is none
                "current": everything,
                **choice,
            }
            for name, selector in (
                ("namespace", 'job="dragoman"'),
                ("deployment", 'job="dragoman",namespace=~"$namespace"'),
                ("pool", 'job="dragoman",namespace=~"$namespace",deployment=~"$deployment"'),
            )
        ),
        {
            "name": "instance",
            "label": "Server",
            "query": f"label_values(dragoman_ready{{{INSTALLATION}}}, instance)",
            "current": everything,
            **choice,
        },
        {
            "name": "model",
            "label": "Model",
            "query": f"label_values(dragoman_slots_max{{{SERVERS}}}, model)",
            "current": everything,
            **choice,
        },
        {  # where docs/runbooks.md is published
            "name": "runbooks",
            "label": "Runbooks",
            "type": "textbox",
            "query": "docs/runbooks.md",
            "current": {"selected": True, "text": "docs/runbooks.md", "value": "docs/runbooks.md"},
        },
    ]


def _panels() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        place = {"x": 0, "y": top, "w": 24, "h": 1}
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}
        )
        top += 1
        left, height = 0, 4 if row[0].kind == "stat" else 8
        for panel in row:
            if left + panel.width > 24:
                left, top = 0, top + height
            place = {"x": left, "y": top, "w": panel.width, "h": height}
            panels.append({"id": len(panels) + 1, "gridPos": place, **_panel(panel)})
            left += panel.width
        top += height
    return panels


def _panel(panel: Panel) -> dict[str, Any]:
    thresholds = {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in panel.steps]}
    overrides = []
    if panel.kind == "stat" and len(panel.queries) > 1:
        of_last = {"id": "thresholds", "value": thresholds}
        overrides = [{"matcher": {"id": "byName", "options": panel.queries[-1][1]}, "properties": [of_last]}]
        thresholds = {**thresholds, "steps": thresholds["steps"][:1]}
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "min": 0,
        "color": {"mode": "thresholds" if panel.kind == "stat" else "palette-classic"},
        "thresholds": thresholds,
        "custom": _custom(panel),
    }
    if panel.highest is not None:
        defaults["max"] = panel.highest
    built = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "targets": [_target(panel, number) for number in range(len(panel.queries))],
        "fieldConfig": {"defaults": defaults, "overrides": overrides},
        "options": _options(panel.kind),
    }
    if panel.kind == "table":  # the labels are what is wanted
        hidden = {"excludeByName": {"Time": True}, "renameByName": {"Value": "servers"}}
        built["transformations"] = [{"id": "organize", "options": hidden}]
    if panel.alert:
        built["links"] = [_link(panel.alert)]
    return built


def _link(alert: str) -> dict[str, Any]:
    return {
        "title": f"Runbook: {alert}",
        "type": "link",
        "url": f"${{runbooks}}#{alert.lower()}",
        "targetBlank": True,
        "asDropdown": False,
        "icon": "doc",
        "includeVars": False,
        "keepTime": False,
        "tags": [],
        "tooltip": "",
    }


def _target(panel: Panel, number: int) -> dict[str, Any]:
    expression, legend = panel.queries[number]
    form = {"heatmap": "heatmap", "table": "table"}.get(panel.kind, "time_series")
    at_once = {"instant": True, "range": False} if panel.kind in ("stat", "table") else {"range": True}
    ref = chr(ord("A") + number)
    return {"refId": ref, "datasource": _SOURCE, "expr": expression, "legendFormat": legend, "format": form, **at_once}


def _custom(panel: Panel) -> dict[str, Any]:
    if panel.kind != "timeseries":
        return {}
    return {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 30 if panel.stacked else 0,
        "showPoints": "never",
        "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "line" if len(panel.steps) > 1 else "off"},
    }


def _options(kind: str) -> dict[str, Any]:
    if kind == "timeseries":
        legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
        return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    if kind == "stat":
        reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
        return {"reduceOptions": reduced, "colorMode": "value", "graphMode": "none", "textMode": "value"}
    if kind == "heatmap":
        colours = {"mode": "scheme", "scheme": "Blues", "exponent": 0.5, "steps": 64, "reverse": False}
        axis = {"unit": "s", "axisPlacement": "left"}
        return {"calculate": False, "color": colours, "yAxis": axis, "cellGap": 1, "legend": {"show": True}}
    return {"showHeader": True}


if __name__ == "__main__":
    DASHBOARD.parent.mkdir(exist_ok=True)
    DASHBOARD.write_text(text(), encoding="utf-8")
