"""The picture of a soak: memory, p99, threads, descriptors and tasks over time."""

from collections.abc import Mapping, Sequence
from pathlib import Path


def draw(series: Mapping[str, Sequence[float]], path: Path) -> None:
    """Draw memory, p99 and counts over time, with the warm-up shaded."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # after the backend is chosen

    minutes = [each / 60 for each in series["seconds"]]
    figure, panes = plt.subplots(3, 1, figsize=(10, 8), layout="constrained", sharex=True)
    panes[0].plot(minutes, series["rss_mib"], color="#1b6ca8")
    panes[0].set_ylabel("resident memory, MiB")
    panes[1].plot([each / 60 for each in series["p99_seconds"]], series["p99_ms"], "o-", color="#1b6ca8", markersize=3)
    panes[1].set_ylabel("p99 of single sentences, ms")
    others = panes[1].twinx()
    others.plot(minutes, series["others_cpus"], color="#999", linewidth=0.7)
    others.set_ylabel("CPUs used by others", color="#666")
    for name, colour in (("threads", "#1b6ca8"), ("descriptors", "#e07b39"), ("tasks", "#6a4c93")):
        panes[2].plot(minutes, series[name], label=name, color=colour)
    panes[2].legend(fontsize=8)
    panes[2].set_xlabel("minutes")
    for pane in panes:
        pane.set_ylim(bottom=0)
        pane.axvspan(0, float(series["warm_seconds"]) / 60, color="#ddd")  # type: ignore[arg-type]
    figure.suptitle("Mixed traffic at half of what the machine can do; models are replaced all the time")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
