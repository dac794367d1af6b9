"""`dragoman translate`: texts of the command line, lines of a file or a pipe, or a document."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from dragoman_client import Flag, MimeType, RequestFields, Translation
from service.cli.options import Connection, connection_options, timeout_option
from service.cli.pipeline import Calls, map_chunks
from service.cli.reports import progress, reporting, show_notes
from service.cli.request_options import document_options, fields_of, request_options
from service.cli.streams import Files, Line, arguments, locating, open_input, open_output, read_lines, write
from service.documents import FORMATS
from service.documents.opening import unknown
from service.documents.report import doubt_about
from service.domain.errors import counted

_FILE = click.Path(path_type=Path, dir_okay=False)
_FORMAT_NAMES = tuple(dict.fromkeys(("text", "html", *(each.name for each in FORMATS.values()))))


@click.command(short_help="Translate texts, lines or a document.")
@click.argument("texts", nargs=-1)
@click.option(
    "--to",
    "target",
    envvar="DRAGOMAN_TRANSLATE_TO",
    required=True,
    metavar="CODE",
    help="Language to translate into, such as de.",
)
@click.option(
    "--from",
    "source",
    envvar="DRAGOMAN_TRANSLATE_FROM",
    default="",
    metavar="CODE",
    help="Language of the texts. Default: detected for each text, or once for a document.",
)
@click.option("-i", "--file", "input_file", type=_FILE, metavar="FILE", help="Translate this file.")
@click.option("-o", "--output", "output_file", type=_FILE, metavar="FILE", help="Write to this file.")
@click.option(
    "--format",
    "format_name",
    envvar="DRAGOMAN_TRANSLATE_FORMAT",
    type=click.Choice(_FORMAT_NAMES),
    help="Format of the input: text, one text per line; or a document. Default: by the file's ending; text if it has "
    "none.",
)
@document_options
@click.option(
    "--report", type=_FILE, metavar="FILE", help="Write to this file, as JSON, which translations to check and why."
)
@click.option("--stream", is_flag=True, help="Print words as they arrive, instead of whole translations.")
@request_options
@timeout_option("Maximum time for one call, of up to 32 texts.")
@connection_options
def translate(
    *,
    texts: tuple[str, ...],
    target: str,
    source: str,
    input_file: Path | None,
    output_file: Path | None,
    format_name: str | None,
    choices: Mapping[str, Any],
    report: Path | None,
    stream: bool,
    request_fields: RequestFields,
    timeout_seconds: float,
    connection: Connection,
) -> None:
    """Translate TEXTS or, without any, the lines of standard input or of a file, or a document.

    Each input line gives one output line, in order; empty lines stay empty. With --num-hypotheses, an output line
    consists of the number of the input line, a score and a candidate, separated by tabs.

    Documents of other formats, and text in another encoding, are read and written as a whole, in their format. For
    files of any size, and for JSON lines, there is 'dragoman bulk'.
    """
    name = format_name or _format_name(input_file)
    is_ranked = request_fields["options"] is not None and request_fields["options"].num_hypotheses is not None
    if texts and input_file:
        raise click.UsageError("give either texts or --file, not both.")
    if texts and name not in ("text", "html"):
        raise click.UsageError(f"--format {name} is for files and pipes; give --file instead of texts.")
    if stream and (not texts or output_file or is_ranked):
        raise click.UsageError("--stream is for texts on the command line, without --output and --num-hypotheses.")
    if is_ranked and (name != "text" or choices):
        raise click.UsageError(f"--num-hypotheses prints a table of its own, so it can't be used with --format {name}.")
    if report and stream:
        raise click.UsageError("--report is for whole translations, without --stream.")
    document_fields = fields_of(choices, name)
    if texts and choices:
        raise click.UsageError("options of documents are for files and pipes; give --file instead of texts.")
    is_document = not texts and (name != "text" or bool(choices))
    request_fields["keep_other_languages"] = is_document or not source
    if name == "html":
        request_fields["mime_type"] = MimeType.HTML
    input_stream = None if texts else open_input(input_file)
    with connection.client(timeout_seconds) as client:
        files = Files(input_stream, input_file, output_file, report)
        calls = Calls(client, source, target, request_fields)
        if stream:
            _print_streams(calls, texts)
        elif input_stream is None:
            _translate_each(calls, arguments(texts), "text", _ranked if is_ranked else _as_it_is, files)
        elif is_document:
            # Imported here: lines need none of the readers of documents, and should start quickly.
            from service.cli.documents import translate_document

            ending = input_file.suffix.lower() if input_file and not format_name else ""
            translate_document(calls, ending or _ending(name), document_fields, files)
        else:
            _translate_each(calls, read_lines(input_stream), "line", _ranked if is_ranked else _on_one_line, files)


def _format_name(path: Path | None) -> str:
    ending = path.suffix.lower() if path else ""
    if not ending:
        return "text"
    if ending not in FORMATS:
        raise click.UsageError(
            f"{unknown(ending)} Name the format with --format, such as --format text for lines of text; JSON lines are "
            "for 'dragoman bulk'."
        )
    return FORMATS[ending].name


def _ending(format_name: str) -> str:
    """Return an ending of a format's files: its name, if that is one."""
    endings = [ending for ending, each in FORMATS.items() if each.name == format_name]
    return f".{format_name}" if f".{format_name}" in endings else endings[-1]


def _print_streams(calls: Calls, texts: tuple[str, ...]) -> None:
    num_kept = 0
    for line in arguments(texts):
        with locating([line], "text"):
            for part in calls.stream(line.text):
                write(sys.stdout.buffer, part.delta)
                num_kept += part.translation is not None and _is_kept(part.translation)
            write(sys.stdout.buffer, line.ending)
    _note_kept(num_kept, "text", calls)


def _translate_each(
    calls: Calls, lines: Iterator[Line], noun: str, rendered: Callable[[Line, Translation], str], files: Files
) -> None:
    """Write each text or line once all before it are translated; notes only for files and pages, not what is piped."""

    def translate_chunk(chunk: list[Line]) -> list[Translation]:
        with locating(chunk, noun):
            return calls.translate([line.text for line in chunk])

    num_kept = 0
    with open_output(files) as output, reporting(files) as report, progress(files, noun) as bar:
        for chunk in map_chunks(lines, translate_chunk):
            write(output, "".join(rendered(line, translation) for line, translation in chunk))
            for line, translation in chunk:
                report.add(line.number, f"{noun} {line.number}", doubt_about(translation))
                num_kept += _is_kept(translation)
            bar.update(len(chunk))
    _note_kept(num_kept, noun, calls)
    if files.input_path or calls.fields.get("mime_type") is MimeType.HTML:
        show_notes(report.notes)


def _as_it_is(line: Line, translation: Translation) -> str:
    return translation.text + line.ending


def _on_one_line(line: Line, translation: Translation) -> str:
    return translation.text.replace("\n", " ") + line.ending


def _ranked(line: Line, translation: Translation) -> str:
    return "".join(
        f"{line.number}\t{'' if hypothesis.score is None else format(hypothesis.score, '.4f')}\t{hypothesis.text}\n"
        for hypothesis in translation.hypotheses
    )


def _is_kept(translation: Translation) -> bool:
    kept = (Flag.TARGET_LANGUAGE, Flag.OTHER_LANGUAGE)
    return any(flag in kept for segment in translation.segments for flag in segment.flags)


def _note_kept(number: int, noun: str, calls: Calls) -> None:
    if number and not calls.source:
        click.echo(
            f"note: {counted(number, f'{noun} is', f'{noun}s are')} unchanged, being in {calls.target!r} already or in "
            "a language that is not translated into it here, as far as can be told; --from names the language.",
            err=True,
        )
