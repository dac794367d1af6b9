"""`dragoman translate`: texts from the command line, a file or a pipe; translations in the same order."""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import click

from dragoman_client import ClientError, Flag, MimeType, RequestFields, StreamEvent, Translation
from service.cli.formats import Documents, Format, JsonField, Record, TextLines, TsvColumn, render
from service.cli.lines import Line, read_document, read_lines
from service.cli.options import Connection, connection_options
from service.cli.output_file import open_output
from service.cli.pipeline import map_chunks
from service.cli.progress import progress
from service.cli.reports import reporting
from service.cli.request_options import request_options
from service.cli.streams import arguments, located, open_input, write
from service.documents import FORMATS

_FILE = click.Path(path_type=Path, dir_okay=False)
_LINE_FORMATS = ("text", "html", "tsv", "jsonl")
# Read as a whole, by service.documents; with an ending by which that knows them, their name if it is one.
_DOCUMENT_FORMATS = {
    each.name: f".{each.name}" if f".{each.name}" in FORMATS else ending
    for ending, each in FORMATS.items()
    if each.name not in _LINE_FORMATS
}
_FORMATS = (*_LINE_FORMATS, *_DOCUMENT_FORMATS)
_FORMAT_OF_ENDING = {".jsonl": "jsonl", ".ndjson": "jsonl", **{ending: each.name for ending, each in FORMATS.items()}}
_AS_DOCUMENTS = {**_DOCUMENT_FORMATS, "html": ".html", "text": ".txt", "tsv": ".tsv"}
_OPTIONS_OF_FORMATS = {
    "attributes": ("html",),
    "encoding": ("text", "tsv", "csv", "md", "srt", "vtt"),
    "front_matter": ("md", "mdx"),
    "header": ("tsv", "csv"),
    "retranslate": ("po", "xliff"),
}


@click.command()
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
@click.option("--resume", is_flag=True, help="Continue where an earlier run with this --output stopped.")
@click.option(
    "--format",
    "format_name",
    envvar="DRAGOMAN_TRANSLATE_FORMAT",
    type=click.Choice(_FORMATS),
    help="Format of the input: text, one text per line; html, one document; tsv, lines of columns; jsonl, a JSON "
    f"object per line; {', '.join(_DOCUMENT_FORMATS)}. Default: by the file's ending; text if it has none.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="N|NAME",
    help="For tsv: number of the column to translate, from 1. For csv, and tsv with --header: its name or number; may "
    "be repeated.",
)
@click.option("--header", is_flag=True, help="For tsv and csv: the first line has the names of the columns.")
@click.option(
    "--encoding",
    metavar="NAME",
    help="For text, tsv, csv, md, srt and vtt: encoding of the file, such as windows-1252.",
)
@click.option("--retranslate", is_flag=True, help="For po and xliff: translate also what has a translation.")
@click.option(
    "--front-matter",
    "front_matter",
    default="",
    metavar="KEY,...",
    help="For md and mdx: keys of its front matter to translate, such as title,description.",
)
@click.option("--attributes", is_flag=True, help="For html: translate also alt, title and the like, and set lang.")
@click.option("--append", is_flag=True, help="For tsv: keep the column, and append its translation as a new one.")
@click.option("--field", metavar="NAME", help="For jsonl: name of the field to translate, a string.")
@click.option(
    "--target-field", metavar="NAME", help="For jsonl: name of the field for the translation. Default: the same."
)
@click.option("--report", type=_FILE, metavar="FILE", help="Write to this file in JSON what to check, and why.")
@click.option("--stream", is_flag=True, help="Print words as they arrive, instead of whole translations.")
@request_options
@click.option(
    "--timeout-seconds",
    type=click.FloatRange(0.001, 86_400),
    default=60.0,
    show_default=True,
    help="Maximum time for one call: a document, or up to 32 lines.",
)
@connection_options
def translate(
    *,
    texts: tuple[str, ...],
    target: str,
    source: str,
    input_file: Path | None,
    output_file: Path | None,
    resume: bool,
    format_name: str | None,
    columns: tuple[str, ...],
    header: bool,
    encoding: str | None,
    retranslate: bool,
    front_matter: str,
    attributes: bool,
    append: bool,
    field: str | None,
    target_field: str | None,
    report: Path | None,
    stream: bool,
    request_fields: RequestFields,
    timeout_seconds: float,
    connection: Connection,
) -> None:
    """Translate TEXTS or, without any, the lines of standard input or of a file.

    Each input line gives one output line, in order; empty lines stay empty. With --num-hypotheses, an output line
    consists of the number of the input line, a score and a candidate, separated by tabs.

    The output has the format of the input: HTML keeps its tags, and the rest of tsv and jsonl stays unchanged byte for
    byte. Output is written in whole lines, so --resume can continue after any interruption. Other documents, and tables
    with named columns, are read and written as a whole.
    """
    name = format_name or _format_name(input_file)
    is_document = (
        name in _DOCUMENT_FORMATS
        or (name == "tsv" and header)
        or (name == "html" and attributes)
        or encoding is not None
    )
    options = request_fields["options"]
    is_ranked = options is not None and options.num_hypotheses is not None
    if texts and input_file:
        raise click.UsageError("give either texts or --file, not both.")
    if texts and name not in ("text", "html"):
        raise click.UsageError(f"--format {name} is for files and pipes; give --file instead of texts.")
    if stream and (not texts or output_file or is_ranked):
        raise click.UsageError("--stream is for texts on the command line, without --output and --num-hypotheses.")
    if is_ranked and name != "text":
        raise click.UsageError(f"--num-hypotheses prints a table of its own, so it can't be used with --format {name}.")
    can_resume = bool(output_file) and not texts and not is_ranked and name != "html" and not is_document
    if resume and not can_resume:
        raise click.UsageError(
            "--resume needs --output and lines of a file or pipe, and can't be used with --num-hypotheses."
        )
    if report and stream:
        raise click.UsageError("--report is for whole translations, without --stream.")
    form: Format = _format(name, columns, append, field, target_field, has_names=is_document)
    _check_options(
        name,
        header=header,
        encoding=encoding,
        retranslate=retranslate,
        front_matter=front_matter,
        attributes=attributes,
    )
    if texts:
        form = Documents()  # each may have several lines
    if name == "html":
        request_fields["mime_type"] = MimeType.HTML
    with contextlib.ExitStack() as stack:
        input_stream = None if texts else stack.enter_context(open_input(input_file))
        client = stack.enter_context(connection.client(timeout_seconds))
        if is_document:
            assert input_stream is not None  # texts are of other formats
            # Imported here: lines need none of the readers of documents, and should start quickly.
            from service.cli.documents import read, translate_document
            from service.documents import DocumentOptions

            keys = tuple(key.strip() for key in front_matter.split(",") if key.strip())
            choices = DocumentOptions(
                columns,
                target,
                has_all=retranslate,
                source=source,
                has_header=header,
                encoding=encoding or "",
                front_matter=keys,
                attributes=attributes,
            )
            own = input_file.suffix.lower() if input_file and not format_name else ""
            document = read(input_stream, input_file, own or _AS_DOCUMENTS[name], choices)
            files = (input_stream, input_file, output_file)
            translate_document(document, client, source, target, request_fields, files, report)
            return
        noun, lines = _input(texts, input_stream, name)
        request_fields["keep_other_languages"] = not source
        num_kept = 0

        def translate_chunk(chunk: list[Record]) -> list[Translation]:
            try:
                return client.translate([record.text for record in chunk], source, target, **request_fields)
            except ClientError as error:
                raise located(error, chunk, noun) from None

        if stream:
            for line in lines:
                num_kept += _print_stream(client.stream([line.text], source, target, **request_fields), line)
            _note_kept(num_kept, noun, source, target)
            return
        output, num_done = stack.enter_context(open_output(output_file, input_file, lines if resume else None))
        reported = stack.enter_context(reporting(report))
        bar = stack.enter_context(progress(input_stream, output_file, num_done, noun))
        try:
            for chunk in map_chunks(map(form.record, lines), translate_chunk):
                rendered = [
                    _ranked(record, translation) if is_ranked else render(record, translation.text, form)
                    for record, translation in chunk
                ]
                write(output, "".join(rendered))
                for record, translation in chunk:
                    reported.add(record.number, f"{noun} {record.number}", translation)
                    num_kept += _is_kept(translation)
                num_done += len(chunk)
                bar.update(len(chunk))
            if name == "html":
                for note in reported.notes:
                    click.echo(f"note: {note}", err=True)
            _note_kept(num_kept, noun, source, target)
        except BaseException as error:
            if can_resume and num_done:
                error.add_note(f"{output_file} has {num_done} lines; run the same command with --resume to continue.")
            raise


def _format_name(path: Path | None) -> str:
    """Return the format of a file by its ending: that of a text, if it has none."""
    ending = path.suffix.lower() if path else ""
    if not ending:
        return "text"
    if ending not in _FORMAT_OF_ENDING:
        known = ", ".join(sorted(_FORMAT_OF_ENDING))
        raise click.UsageError(
            f"the ending {ending!r} is not known; known are {known}. Name the format with --format, such as "
            "--format text for lines of text."
        )
    return _FORMAT_OF_ENDING[ending]


def _format(
    name: str, columns: tuple[str, ...], appends: bool, field: str | None, target_field: str | None, *, has_names: bool
) -> Format:
    """Return the format for these options; that of documents has no lines."""
    if name == "tsv" and not columns:
        raise click.UsageError("--format tsv needs --column N, the column to translate; or give --format text.")
    if name == "csv" and not columns:
        raise click.UsageError("--format csv needs --column NAME, a column to translate, or its number.")
    if name == "jsonl" and field is None:
        raise click.UsageError("--format jsonl needs --field NAME, the field to translate; or give --format text.")
    if columns and name not in ("tsv", "csv"):
        raise click.UsageError(f"--column is for --format tsv and csv, and this is {name}.")
    given = {"--append": appends, "--field": field, "--target-field": target_field}
    for option, value in given.items():
        needed = "tsv" if option == "--append" else "jsonl"
        if value not in (None, False) and name != needed:
            raise click.UsageError(f"{option} is for --format {needed}, and this is {name}.")
    if appends and has_names:
        raise click.UsageError("--append is for columns by number, without --header.")
    if columns and not has_names:
        return TsvColumn(_number(columns), appends)
    if field is not None:
        return JsonField(field, field if target_field is None else target_field)
    return Documents() if name == "html" else TextLines()


def _number(columns: tuple[str, ...]) -> int:
    if len(columns) > 1:
        raise click.UsageError("several --column are for csv, and for tsv with --header.")
    if not (columns[0].isascii() and columns[0].isdigit()):
        raise click.BadParameter(
            f"{columns[0]!r} is not a number; names of columns need --header.", param_hint="'--column'"
        )
    if int(columns[0][:9]) < 1:
        raise click.BadParameter(f"{columns[0]} is not in the range x>=1.", param_hint="'--column'")
    return int(columns[0][:9])


def _check_options(name: str, **given: object) -> None:
    """Check the options that are for some formats only."""
    for option, value in given.items():
        formats = _OPTIONS_OF_FORMATS[option]
        if value and name not in formats:
            flag, known = option.replace("_", "-"), (" and " if len(formats) == 2 else ", ").join(formats)
            raise click.UsageError(f"--{flag} is for --format {known}, and this is {name}.")
    if encoding := given["encoding"]:
        try:
            "".encode(str(encoding))
        except LookupError:
            raise click.BadParameter(f"{encoding!r} is not the name of an encoding, such as windows-1252.") from None


def _input(texts: tuple[str, ...], stream: BinaryIO | None, format_name: str) -> tuple[str, Iterator[Line]]:
    if stream is None:
        return "text", arguments(texts)
    return ("document", read_document(stream)) if format_name == "html" else ("line", read_lines(stream))


def _print_stream(parts: Iterable[StreamEvent], line: Line) -> bool:
    """Print a text's translation as it grows, and return whether it is the text itself: `_is_kept`."""
    is_kept = False
    try:
        for part in parts:
            write(sys.stdout.buffer, part.delta)
            is_kept |= part.translation is not None and _is_kept(part.translation)
        write(sys.stdout.buffer, line.ending)
    except ClientError as error:
        raise located(error, [line], "text") from None
    return is_kept


def _is_kept(translation: Translation) -> bool:
    """Return whether a text came back unchanged because of its language."""
    kept = (Flag.TARGET_LANGUAGE, Flag.OTHER_LANGUAGE)
    return any(flag in kept for segment in translation.segments for flag in segment.flags)


def _note_kept(number: int, noun: str, source: str, target: str) -> None:
    """Say how many texts came back unchanged, unless the caller gave their language."""
    if number and not source:
        texts = f"{noun}s are" if number > 1 else f"{noun} is"
        click.echo(
            f"note: {number} {texts} unchanged, being in {target!r} already or in a language that is not translated "
            "into it here, as far as can be told; --from names the language.",
            err=True,
        )


def _ranked(record: Record, translation: Translation) -> str:
    return "".join(
        f"{record.number}\t{'' if hypothesis.score is None else format(hypothesis.score, '.4f')}\t{hypothesis.text}\n"
        for hypothesis in translation.hypotheses
    )
