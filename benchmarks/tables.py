"""Formats records of measurements as Markdown tables; pure, so that the document's content can be tested."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]
MISSING = "-"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; aligning numbers is up to the reader."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fastest(records: Iterable[Record], **wanted: Any) -> Record | None:
    """Return the record with the highest best rate among those with the wanted fields; `None` if there is none."""
    found = [record for record in records if all(record.get(name) == value for name, value in wanted.items())]
    return max(found, key=lambda record: record["tokens_per_second_best"], default=None)


def as_served(records: Iterable[Record]) -> list[Record]:
    """Return the records without our engine's other settings: the tables show only what `dragoman serve` runs with."""
    return [
        record
        for record in records
        if record["engine"] != "dragoman" or not record.get("settings", {}).get("allow_spinning", False)
    ]


def offline_table(records: Sequence[Record]) -> str:
    """Return best and median tokens per second of every row, with our ratio to CTranslate2's fastest of that row.

    A list of CTranslate2's settings follows.
    """
    served = as_served(records)
    rows, settings = [], []
    for key in sorted({(record["model"], record["decode"], record["batch"]) for record in served}, key=_row_order):
        wanted = dict(zip(("model", "decode", "batch"), key, strict=True))
        ours = fastest(served, engine="dragoman", precision="int8", **wanted)
        theirs = fastest(served, engine="ctranslate2", **wanted)
        cells = [
            _rate(ours),
            _rate(fastest(served, engine="dragoman", precision="float32", **wanted)),
            _rate(theirs),
            _rate(fastest(served, engine="transformers", **wanted)),
            _ratio_text(ratio_of(ours, theirs)),
        ]
        name = f"{key[0]}, {key[1]}, batch {key[2]}"
        rows.append([name, *cells])
        settings.append(f"- {name}: {_settings(theirs)}")
    table = markdown(("row", "ours int8", "ours float32", "CTranslate2", "transformers", "ratio"), rows)
    return "\n".join((table, "", "CTranslate2's settings:", "", *settings))


def outputs_table(records: Sequence[Record]) -> str:
    """Return the share of outputs with the same tokens as our float32, per engine and precision; lowest to highest."""
    shares: dict[tuple[str, str, str, str], list[float]] = {}
    for record in records:
        if record.get("identical_to_float32") is not None:
            key = (record["model"], record["decode"], record["engine"], record["precision"])
            shares.setdefault(key, []).append(record["identical_to_float32"])
    rows = [[*key, _range(values)] for key, values in sorted(shares.items())]
    return markdown(("model", "decode", "engine", "precision", "identical to our float32"), rows)


def ratio_of(ours: Record | None, theirs: Record | None) -> float | None:
    """Return the ratio of ours to theirs, best round to best round; `None` if one was not measured."""
    if ours is None or theirs is None:
        return None
    return float(ours["tokens_per_second_best"] / theirs["tokens_per_second_best"])


def _row_order(key: tuple[str, str, int]) -> tuple[str, int, int]:
    return key[0], ("greedy", "beam4").index(key[1]), key[2]


def _rate(record: Record | None) -> str:
    if record is None:
        return MISSING
    return f"{record['tokens_per_second_best']:.0f} ({record['tokens_per_second_median']:.0f})"


def _ratio_text(ratio: float | None) -> str:
    return MISSING if ratio is None else f"{ratio:.2f}x"


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"


def _settings(record: Record | None) -> str:
    if record is None:
        return MISSING
    values = ", ".join(f"{name} {value}" for name, value in record["settings"].items())
    return f"{record['precision']}, {values}"
