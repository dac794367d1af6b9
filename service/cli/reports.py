"""Reports of what a person should check of translations, in files of JSON."""

import contextlib
import json
from collections.abc import Iterator, Sequence

import click

from dragoman_client import Translation
from service.cli.streams import Files, create, write_bytes
from service.documents.document import Doubt
from service.documents.report import Report, doubt_of


class TranslationReport:
    """What the calls of a command said of its texts."""

    def __init__(self, notes: Sequence[str]) -> None:
        self._report = Report(notes)

    def add(self, number: int, place: str, translation: Translation) -> Doubt | None:
        """Take the translation of the text at `place`, and return the doubt about it, if there is one."""
        flags = (flag.value for segment in translation.segments for flag in segment.flags)
        doubt = doubt_of(flags, translation.finish_reason.value)
        self._report.add(number, place, doubt)
        return doubt

    @property
    def notes(self) -> list[str]:
        return self._report.notes

    def in_json(self) -> bytes:
        return json.dumps(self._report.to_json(), ensure_ascii=False, indent=2).encode() + b"\n"


@contextlib.contextmanager
def reporting(files: Files, notes: Sequence[str] = ()) -> Iterator[TranslationReport]:
    """Yield a report; at the end of the `with` block it is written to its file, if there is one."""
    report = TranslationReport(notes)
    if files.report_path is None:
        yield report
        return
    with create(files.report_path) as output:
        yield report
        write_bytes(output, report.in_json())


def show_notes(notes: Sequence[str]) -> None:
    """Print notes on a document or on translations to standard error."""
    for note in notes:
        click.echo(f"note: {note}", err=True)
