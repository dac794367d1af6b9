"""Plots a run's loss curve from its log."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot


def plot_losses(log: Path, picture: Path, title: str) -> None:
    """Draw training and validation loss over tokens seen, from the loop's `log.jsonl`, into a PNG."""
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    figure, axes = pyplot.subplots(figsize=(7, 4), dpi=110)
    for key, label, style in (
        ("loss", "training (label-smoothed)", "-"),
        ("averaged_validation_loss", "validation", "o-"),
    ):
        points = [(record["tokens"] / 1e6, record[key]) for record in records if key in record]
        if points:
            axes.plot(*zip(*points, strict=True), style, label=label, markersize=3, linewidth=1)
    axes.set_xlabel("source and target tokens seen (millions)")
    axes.set_ylabel("nats per target token")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(picture)
    pyplot.close(figure)
