"""`python -m tests.faults.report`: write the table and picture of docs/reliability.md, from build/reliability."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.tables import markdown
from tests.faults.proofs import PROVED
from tests.servers import REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "reliability.md"
PICTURE = REPOSITORY / "docs" / "images" / "soak.png"
BEGIN, END = "<!-- proofs -->", "<!-- end of proofs -->"
HEAD = ("promise", "test", "form", "cases", "failures", "date", "commit")
PROMISES = (  # in the order of the sections of the document
    "overload",
    "deadlines",
    "cancellation",
    "cross-talk",
    "faults-inside",
    "recovery",
    "faults-outside",
    "attacks",
    "floods",
    "framing",
    "signals",
    "fuzz-requests",
    "fuzz-readers",
    "fuzz-bundles",
    "soak",
    "invariants",
)


Record = Mapping[str, Any]  # as `tests.faults.proofs` writes it
_ROW = re.compile(r"^\| ((?P<promise>[\w-]+) \| `(?P<path>\S+)` \| (?P<form>\w+) \|.*) \|$", re.MULTILINE)


class Key(NamedTuple):
    """The key of a row: `path` is the tests' path in the repository, `form` is that of `write_proof`."""

    promise: str
    path: str
    form: str


def rows_of(records: Iterable[Record]) -> dict[Key, Sequence[str]]:
    """Return the cells of the table's rows; dates and commits are the latest.

    Raises:
        KeyError: a promise is not among `PROMISES`.
    """
    by_key: dict[Key, list[Record]] = {}
    for record in records:
        key = Key(record["promise"], record["test"].partition("::")[0], record["form"])
        by_key.setdefault(key, []).append(record)
    rows: dict[Key, Sequence[str]] = {}
    for key, found in by_key.items():
        if key.promise not in PROMISES:
            raise KeyError(
                f"promise {key.promise!r} has no section in docs/reliability.md; choose one of {', '.join(PROMISES)}."
            )
        latest = max(found, key=lambda record: record["date"])
        rows[key] = (
            key.promise,
            f"`{key.path}`",
            key.form,
            f"{sum(record['cases'] for record in found):,}",
            f"{sum(record['failures'] for record in found):,}",
            latest["date"],
            latest["commit"],
        )
    return rows


def completed(document: str, rows: Mapping[Key, Sequence[str]]) -> str:
    """Return the document with these rows in its table.

    Keep the rows of other tests that still exist: long forms do not run every day, nor all on one machine.
    """
    head, _, rest = document.partition(BEGIN)
    old, _, tail = rest.partition(END)
    kept = {Key(*row.group("promise", "path", "form")): row[1].split(" | ") for row in _ROW.finditer(old)}
    merged = {key: row for key, row in {**kept, **rows}.items() if (REPOSITORY / key.path).exists()}
    order = sorted(merged, key=lambda key: (PROMISES.index(key.promise), key.path, "long" in key.form, key.form))
    lines = [merged[key] for key in order]
    latest = max(lines, key=lambda cells: cells[5])
    dated = f"Latest records: {latest[5]}, commit {latest[6]}.\n"
    return "\n".join((head + BEGIN, dated, markdown(HEAD, lines), END + tail))


def records_of(folder: Path) -> list[Record]:
    """Read the records of tests and soak, in the order of the file names."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def main() -> None:
    """Write the table, and the picture if there was a soak."""
    records = records_of(PROVED)
    DOCUMENT.write_text(completed(DOCUMENT.read_text("utf-8"), rows_of(records)), encoding="utf-8")
    print(f"{DOCUMENT}: {len(records)} records.")
    for record in records:
        if "series" in record:
            draw(record["series"], PICTURE)
            print(PICTURE)


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


if __name__ == "__main__":
    main()
