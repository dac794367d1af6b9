"""Plots of the measurements."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.tables import Record, as_served, fastest

mpl.use("Agg")

from matplotlib import pyplot as plt  # after the backend is set

COLOURS = {"dragoman int8": "#1b6ca8", "dragoman float32": "#8fc1e3", "ctranslate2": "#e07b39", "transformers": "#999"}
LINES = {"continuous": "#1b6ca8", "static (CTranslate2)": "#e07b39", "static": "#6a4c93", "one by one": "#999"}
MODELS = ("base", "en-de")


def write_plots(records: Callable[[str], list[dict[str, Any]]], folders: Sequence[Path]) -> list[str]:
    """Draw the records that `records` returns for each benchmark's name into every folder; return the file names."""
    written = []
    for name, draw, source in (
        ("offline.png", _offline, "offline"),
        ("serving.png", _serving, "serving"),
        ("scale.png", _scale, "scale"),
    ):
        found = records(source)
        if not found:
            continue
        figure = draw(found)
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(folder / name, dpi=110, metadata={"Software": None})
        plt.close(figure)
        written.append(name)
    return written


def _offline(records: Sequence[Record]) -> Any:
    served = as_served(records)
    figure, panes = plt.subplots(2, 2, figsize=(11, 7), layout="constrained")
    for across, model in enumerate(MODELS):
        for down, decode in enumerate(("greedy", "beam4")):
            pane = panes[down][across]
            batches = sorted({r["batch"] for r in served if r["model"] == model and r["decode"] == decode})
            for number, (label, colour) in enumerate(COLOURS.items()):
                engine, _, precision = label.partition(" ")
                wanted = {"engine": engine, "model": model, "decode": decode}
                if precision:
                    wanted["precision"] = precision
                best = [fastest(served, batch=batch, **wanted) for batch in batches]
                heights = [record["tokens_per_second_best"] if record else 0.0 for record in best]
                places = [i + 0.2 * (number - 1.5) for i in range(len(batches))]
                bars = pane.bar(places, heights, 0.19, label=label, color=colour)
                pane.bar_label(bars, fmt="%.0f", fontsize=7)
            pane.set_xticks(range(len(batches)), [f"batch {batch}" for batch in batches])
            pane.set_title(f"{model}, {decode}")
            pane.set_ylabel("tokens/s (best round)")
    panes[0][0].legend(fontsize=8)
    figure.suptitle("Tokens per second, same weights; CTranslate2 at its fastest settings of each row")
    return figure


def _serving(records: Sequence[Record]) -> Any:
    figure, panes = plt.subplots(2, 2, figsize=(11, 7), layout="constrained", squeeze=False)
    for across, model in enumerate(MODELS):
        sweep = [record for record in records if record["model"] == model and record["kind"] == "sweep"]
        for batching in dict.fromkeys(record["batching"] for record in sweep):
            points = sorted((r for r in sweep if r["batching"] == batching), key=lambda r: float(r["rate"]))
            rates = [point["rate"] for point in points]
            colour = LINES[batching]
            label = "Dragoman" if batching == "continuous" else "CTranslate2, static batches"
            panes[0][across].plot(rates, [p["goodput"] for p in points], "o-", color=colour, label=label)
            tight = [
                r for r in records if (r["model"], r["kind"], r.get("batching")) == (model, "sweep, tight", batching)
            ]
            tight.sort(key=lambda r: float(r["rate"]))
            tight_rates, tight_goodput = [p["rate"] for p in tight], [p["goodput"] for p in tight]
            panes[0][across].plot(tight_rates, tight_goodput, "o:", color=colour, label=f"{label}, tight objective")
            panes[1][across].plot(rates, [p["p50_ms"] for p in points], "o--", color=colour, label=f"{label}, p50")
            panes[1][across].plot(rates, [p["p99_ms"] for p in points], "o-", color=colour, label=f"{label}, p99")
        if sweep:
            panes[1][across].axhline(sweep[0]["slo_ms"], color="#c00", linewidth=1, label="objective")
            panes[1][across].set_yscale("log")
        panes[0][across].set_title(model)
        panes[0][across].set_ylabel("goodput, sentences/s")
        panes[1][across].set_ylabel("latency of answered calls, ms")
        panes[1][across].set_xlabel("offered load, sentences/s")
        for pane in (panes[0][across], panes[1][across]) if sweep else ():
            pane.set_xscale("log")
            pane.legend(fontsize=8)
    figure.suptitle("Open loop: Poisson arrivals of single sentences over gRPC")
    return figure


def _scale(records: Sequence[Record]) -> Any:
    kinds = list(dict.fromkeys(record["kind"] for record in records))
    figure, panes = plt.subplots(1, len(kinds), figsize=(4.2 * len(kinds), 3.8), layout="constrained", squeeze=False)
    for pane, kind in zip(panes[0], kinds, strict=True):
        chosen = [record for record in records if record["kind"] == kind]
        for model in dict.fromkeys(record["model"] for record in chosen):
            points = [record for record in chosen if record["model"] == model]
            pane.plot([p["x"] for p in points], [p["y"] for p in points], "o-", label=model)
        pane.set_xlabel(chosen[0]["x_name"])
        pane.set_ylabel(chosen[0]["y_name"])
        pane.set_ylim(bottom=0)
        pane.set_title(kind, fontsize=9)
        pane.legend(fontsize=8)
    return figure
