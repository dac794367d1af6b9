"""What a stranger can check in ten minutes: how much faster than CTranslate2 engine and server are on this machine.

Runs `benchmarks.offline` and `benchmarks.serving` in short on two cores, whatever the machine has. The search for
CTranslate2's fastest settings is made once (`benchmarks.kept`).
"""

import json
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from benchmarks.report import DEFAULT_FOLDER
from benchmarks.serving_summary import OURS, figures
from benchmarks.tables import MISSING, Compared, Record, bars, markdown, of_engines, settings_of

SHAPES = {  # of models, with what they are
    "base": "d 512, 6+6 layers, 32,000 tokens, random",
    "en-de": "d 256, 6+2 layers, 8,192 tokens, as shipped",
    "big": "d 1024, 6+6 layers, 58,000 tokens, random: tc-big's",
}
SERVED = ("base", "en-de")
PEER = "static (CTranslate2)"
OUTSIDE = "CPU per call outside the engine, ms"
OFFLINE, SERVING = "quick-offline", "quick-serving"
RUNS = (
    f"offline --model base --model en-de --model big --engine dragoman --engine ctranslate2 --seconds 4 --finalists 2 "
    f"--name {OFFLINE}",
    f"serving --model base --model en-de --part capacity --part 'few callers' --seconds 4 --rounds 3 --name {SERVING}",
)
PICTURE = DEFAULT_FOLDER / "quick.svg"


@click.command()
@click.option("--again", is_flag=True, help="Print what was measured before.")
def main(again: bool) -> None:
    """Measure and print; the figures are in build/bench/quick-*.json, a picture in build/bench/quick.svg."""
    use_two_cores()
    for line in () if again else RUNS:
        subprocess.run([sys.executable, "-m", *shlex.split(f"benchmarks.{line}")], check=True)
    offline, served = (json.loads((DEFAULT_FOLDER / f"{name}.json").read_text("utf-8")) for name in (OFFLINE, SERVING))
    compared = [*of_engines(offline), *of_servers(served)]
    title = f"{offline[0]['cpu']} ({', '.join(offline[0]['machine']['extensions'])}), two cores"
    versions = ", ".join(map(" ".join, offline[0]["versions"].items()))
    click.echo(f"\n{title}\n{versions}\n\n{table(compared, served)}\n")
    click.echo(bars(compared))
    draw(compared, title, PICTURE)
    click.echo(f"Ours: int8 and otherwise as served. Wrote {PICTURE}.")


def use_two_cores() -> None:
    """Confine this process and those that it starts to a thread of each of two cores, so that machines compare."""
    allowed = sorted(os.sched_getaffinity(0))
    cores: dict[str, int] = {}
    for cpu in allowed:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(siblings.read_text("ascii") if siblings.exists() else str(cpu), cpu)
    os.sched_setaffinity(0, list(dict.fromkeys([*cores.values(), *allowed]))[:2])


def of_servers(records: Sequence[Record]) -> Iterator[Compared]:
    """Yield capacity and few callers of each model, by the best rounds as well."""
    for model in SERVED:
        rounds = _figures(records, model)
        settings = [settings_of(each) for each in records if (each["model"], each.get("batching")) == (model, PEER)]
        for name in ("capacity", "16 callers"):
            rate, other = (max(rounds[f"{name}, calls/s, {side}"]) for side in (OURS, PEER))
            yield Compared(model, name, rate, other, settings[0])


def table(compared: Sequence[Compared], served: Sequence[Record]) -> str:
    """Return the ratios, a row for each model, and what a call costs at our server and at CTranslate2's."""
    columns = list(dict.fromkeys(each.what for each in compared))
    rows = []
    for model, shape in SHAPES.items():
        ratios = {each.what: f"{each.ratio:.2f}" for each in compared if each.model == model}
        costs = [_figures(served, model).get(f"{OUTSIDE}, {side}") for side in (OURS, PEER)]
        shown = (f"{statistics.median(cost):.2f}" if cost else MISSING for cost in costs)
        rows.append([f"{model} ({shape})", *(ratios.get(name, MISSING) for name in columns), " and ".join(shown)])
    return markdown(("model", *columns, OUTSIDE), rows)


def draw(compared: Sequence[Compared], title: str, path: Path) -> None:
    """Draw horizontal bars, and a line where CTranslate2 is."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # after the backend is chosen

    figure, pane = plt.subplots(figsize=(9, 1 + 0.28 * len(compared)), layout="constrained")
    drawn = pane.barh([each.name for each in compared], [each.ratio for each in compared], color="#1b6ca8")
    pane.bar_label(drawn, fmt="%.2f", padding=3)
    pane.axvline(1.0, color="#e07b39", label="CTranslate2")
    pane.invert_yaxis()
    pane.legend()
    pane.set_title(title, fontsize=9)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _figures(records: Sequence[Record], model: str) -> dict[str, Sequence[float]]:
    """Return the values of all rounds by figure."""
    return dict(figures([record for record in records if record["model"] == model]))


if __name__ == "__main__":
    main()
