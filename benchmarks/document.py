"""`python -m benchmarks.document`: the tables and pictures of docs/benchmarks.md from the records in build/bench."""

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from benchmarks.figures import figure_of, figures_table
from benchmarks.report import DEFAULT_FOLDER, read_records
from benchmarks.tables import offline_table, outputs_table, serving_table
from benchmarks.targets import targets, targets_table

MEASURED = ("offline", "serving", "serving_figures", "inside", "step_time", "invariance-int8", "int8_quality")
DOCUMENT = Path("docs/benchmarks.md")
IMAGES = Path("docs/images")
WIDTH = 120  # of the document's lines


@click.command()
@click.option("--document", default=DOCUMENT, type=click.Path(exists=True, path_type=Path), show_default=True)
@click.option("--records", default=DEFAULT_FOLDER, type=click.Path(path_type=Path), show_default=True)
def main(document: Path, records: Path) -> None:
    """Fill in the tables between the document's markers; its prose stays."""
    from benchmarks.plots import write_plots

    def read(name: str) -> list[dict[str, Any]]:
        return read_records(name, records)

    text = document.read_text(encoding="utf-8")
    document.write_text(filled(text, sections(read)), encoding="utf-8")
    names = write_plots(read, (IMAGES, records))
    click.echo(f"Wrote {document} and {', '.join(names) or 'no pictures'}.")


def sections(read: Callable[[str], list[dict[str, Any]]]) -> dict[str, str]:
    """Return marker -> Markdown, for every benchmark that has run."""
    records = {name: read(name) for name in MEASURED}
    offline, serving = records["offline"], records["serving"]
    found = {"targets": targets_table(targets(records))}
    machine = next((each for of_one in records.values() for each in of_one if "machine" in each), None)
    if machine is not None:
        found["machine"] = _wrapped(circumstances(machine))
    if offline:
        found["offline"] = offline_table(offline)
        found["outputs"] = outputs_table(offline)
    if serving:
        found["serving"] = serving_table(serving)
    if records["serving_figures"]:
        found["figures"] = figures_table([figure_of(record) for record in records["serving_figures"]])
    for name in ("scale", "limit", "cli_file", "call_costs"):
        if lines := [_wrapped(f"- {record['line']}", indent="  ") for record in read(name)]:
            found[name] = "\n".join(lines)
    return found


def _wrapped(text: str, indent: str = "") -> str:
    return fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def circumstances(record: Mapping[str, Any]) -> str:
    """Return where and with what a record was measured, in one line."""
    machine, versions = record["machine"], record["versions"]
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    extensions = " ".join(machine["extensions"])
    return f"{machine['cpu']}, {machine['cpus']} CPUs ({extensions}), {machine['memory_gib']} GiB; {packages}."


def filled(text: str, tables: Mapping[str, str]) -> str:
    """Return `text` with each table between its markers, `<!-- name -->` and `<!-- /name -->`; others stay unchanged.

    Raises:
        ValueError: a marker is missing.
    """
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, found_begin, rest = text.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found_begin or not found_end:
            raise ValueError(f"the document lacks {begin} ... {end}.")
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


if __name__ == "__main__":
    main()
