"""A command's progress bar, its notes, and its JSON report of translations to check."""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

import click

from service.cli.streams import Files, count_lines, create, write
from service.documents.report import Report

if TYPE_CHECKING:
    from tqdm import tqdm


def progress(files: Files, noun: str, total: int | None = None) -> "tqdm[NoReturn]":
    """Return a progress bar on standard error, if that is a terminal used for neither input nor output."""
    from tqdm import tqdm  # imported here: the other commands do not need it, and should start quickly

    stream = files.input_stream
    is_visible = stream is not None and sys.stderr.isatty() and not stream.isatty()
    is_visible = is_visible and (files.output_path is not None or not sys.stdout.isatty())
    if total is None and is_visible and stream is not None and stream.seekable():
        total = count_lines(stream)
    return tqdm(total=total, unit=f" {noun}s", disable=not is_visible, file=sys.stderr, mininterval=0.2)


@contextlib.contextmanager
def reporting(files: Files, notes: Sequence[str] = ()) -> Iterator[Report]:
    """Yield a report; at the end of the `with` block it is written to its file, if there is one."""
    report = Report(notes)
    if files.report_path is None:
        yield report
        return
    with create(files.report_path) as output:
        yield report
        write(output, json.dumps(report.to_json(), ensure_ascii=False, indent=2) + "\n")


def show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"note: {note}", err=True)
