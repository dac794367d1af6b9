"""Draws the dashboard's panels as Grafana lays them out, from a live Prometheus."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.panels import expressions
from benchmarks.prometheus import Prometheus

mpl.use("Agg")

from matplotlib import pyplot as plt  # after the backend is set
from matplotlib.colors import PowerNorm
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter

Span = tuple[float, float]
Panels = Sequence[tuple[str, dict[str, Any]]]  # each with the title of its row

_NUM_STEPS = 180
_COLUMNS = 24
_COLOURS = ("#7EB26D", "#EAB839", "#6ED0E0", "#EF843C", "#E24D42", "#1F78C1", "#BA43A9", "#705DA0")
_NAMED = {"green": "#56A64B", "red": "#C4162A"}
_TEXT = {"none": "{:.0f}", "short": "{:,.3g}", "reqps": "{:,.3g}/s"}


def draw(prometheus: Prometheus, panels: Panels, span: Span, window: str, path: Path, title: str) -> None:
    """Draw `panels` over a span of unix times into a PNG; rates are over `window`, such as `15s`."""
    first = min(panel["gridPos"]["y"] for _, panel in panels) - 1  # the row's title is above
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for _, panel in panels) - first
    figure = plt.figure(figsize=(17, 0.5 * rows + 0.7), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06))
    grid = figure.add_gridspec(rows, _COLUMNS)
    drawn = set()
    for row, panel in panels:
        place = panel["gridPos"]
        top = place["y"] - first
        if row not in drawn:
            drawn.add(row)
            title_pane = figure.add_subplot(grid[top - 1, :])
            title_pane.set_axis_off()
            title_pane.text(0, 0.2, row, fontsize=13, color="#1F78C1", fontweight="bold", va="center")
        cell = grid[top : top + place["h"], place["x"] : place["x"] + place["w"]]
        pane = figure.add_subplot(cell)
        pane.set_title(panel["title"], fontsize=10, loc="left", fontweight="bold")
        _DRAWN[panel["type"]](pane, panel, prometheus, span, window)
    figure.suptitle(title, fontsize=12)
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)


def _series(panel: dict[str, Any], prometheus: Prometheus, span: Span, window: str) -> list[tuple[str, list[Any]]]:
    start, end = span
    found = []
    asked = expressions(panel, window=window, shown=f"{round(end - start)}s")
    for target, expression in zip(panel["targets"], asked, strict=True):
        for series in prometheus.query_range(expression, start, end, (end - start) / _NUM_STEPS):
            points = [(float(at) - start, float(value)) for at, value in series["values"]]
            found.append((_legend(target["legendFormat"], series["metric"]), points))
    return found


def _legend(template: str, labels: dict[str, str]) -> str:
    for name, value in labels.items():
        template = template.replace("{{" + name + "}}", value.rpartition("/")[2])
    return template


def _draw_lines(pane: Any, panel: dict[str, Any], prometheus: Prometheus, span: Span, window: str) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    series = sorted(_series(panel, prometheus, span, window), key=lambda each: each[0])
    if not any(points for _, points in series):
        _say(pane, "no data")
        return
    if defaults["custom"]["stacking"]["mode"] == "normal":
        times = sorted({at for _, points in series for at, _ in points})
        heights = [[dict(points).get(at, 0.0) for at in times] for _, points in series]
        pane.stackplot(times, heights, labels=[name for name, _ in series], colors=_COLOURS, alpha=0.75)
    else:
        for number, (name, points) in enumerate(series):
            colour = _COLOURS[number % len(_COLOURS)]
            pane.plot(*zip(*points, strict=True), label=name, color=colour, linewidth=1.4)
    highest = pane.get_ylim()[1]
    for step in defaults["thresholds"]["steps"]:
        if step["value"] is not None and step["value"] < 1.5 * highest:
            pane.axhline(step["value"], color=_NAMED.get(step["color"], step["color"]), linewidth=1, linestyle="--")
            highest = max(highest, 1.1 * step["value"])
    _frame(pane, span, defaults["unit"], defaults.get("max", 1.15 * highest))
    pane.legend(fontsize=8, loc="upper left", ncols=2 if len(series) > 2 else 1, framealpha=0.6)


def _draw_heatmap(pane: Any, panel: dict[str, Any], prometheus: Prometheus, span: Span, window: str) -> None:
    by_bound = {float(name): dict(points) for name, points in _series(panel, prometheus, span, window)}
    bounds = sorted(by_bound)
    times = sorted({at for points in by_bound.values() for at in points})
    totals = [[by_bound[bound].get(at, 0.0) for at in times] for bound in bounds]
    counts = [
        [high - low for low, high in zip(*pair, strict=True)]
        for pair in zip([[0.0] * len(times), *totals], totals, strict=False)
    ]
    used = [number for number, row in enumerate(counts) if max(row) > 0.5]
    shown = slice(max(used[0] - 1, 0), used[-1] + 2)
    norm = PowerNorm(0.5, vmin=0)
    pane.pcolormesh(times, range(len(bounds[shown])), counts[shown], cmap="Blues", norm=norm, shading="nearest")
    pane.set_yticks(range(len(bounds[shown])), [_in_unit(bound, "s") for bound in bounds[shown]], fontsize=7)
    pane.set_xlim(0, span[1] - span[0])
    pane.xaxis.set_major_formatter(FuncFormatter(_clock))
    pane.tick_params(axis="x", labelsize=8)


def _draw_number(pane: Any, panel: dict[str, Any], prometheus: Prometheus, span: Span, window: str) -> None:
    values = [points[-1][1] for _, points in _series(panel, prometheus, span, window) if points]
    pane.set_axis_off()
    if not values:
        _say(pane, "no data")
        return
    defaults = panel["fieldConfig"]["defaults"]
    steps = [step for step in defaults["thresholds"]["steps"] if step["value"] is None or values[0] >= step["value"]]
    colour = _NAMED.get(steps[-1]["color"], steps[-1]["color"])
    pane.text(0.5, 0.45, _in_unit(values[0], defaults["unit"]), fontsize=24, color=colour, ha="center", va="center")


def _draw_table(pane: Any, panel: dict[str, Any], prometheus: Prometheus, span: Span, window: str) -> None:
    pane.set_axis_off()
    expression = next(expressions(panel, window=window, shown=f"{round(span[1] - span[0])}s"))
    columns = ("model", "version", "precision")
    cells = [
        [series["metric"][name] for name in columns] + [series["value"][1]] for series in prometheus.query(expression)
    ]
    table = pane.table(cells, colLabels=[*columns, "servers"], loc="upper center", cellLoc="left", edges="horizontal")
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    table.scale(1, 1.5)


def _frame(pane: Any, span: Span, unit: str, highest: float) -> None:
    pane.set_xlim(0, span[1] - span[0])
    pane.set_ylim(0, highest or 1)
    pane.xaxis.set_major_formatter(FuncFormatter(_clock))
    pane.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _in_unit(value, unit)))
    pane.tick_params(labelsize=8)
    pane.grid(alpha=0.25)
    pane.spines[["top", "right"]].set_visible(False)


def _say(pane: Any, text: str) -> None:
    pane.set_xticks([])
    pane.set_yticks([])
    pane.text(0.5, 0.5, text, transform=pane.transAxes, color="#888", ha="center", va="center")


def _clock(seconds: float, _: int) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _in_unit(value: float, unit: str) -> str:
    if math.isnan(value):
        return "–"
    if unit == "percentunit":
        return f"{100 * value:.4g} %"
    if unit == "bytes":
        return f"{value / 2**20:.0f} MiB"
    if unit != "s":
        return _TEXT[unit].format(value)
    if math.isinf(value) or value >= 100:
        return f"{value:.0f} s"
    return f"{value:.3g} s" if value >= 1 or value == 0 else f"{1000 * value:.3g} ms"


_DRAWN: dict[str, Callable[[Any, dict[str, Any], Prometheus, Span, str], None]] = {
    "timeseries": _draw_lines,
    "heatmap": _draw_heatmap,
    "stat": _draw_number,
    "table": _draw_table,
}
