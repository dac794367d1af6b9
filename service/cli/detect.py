"""`dragoman detect`: the languages of texts or lines."""

import sys
from pathlib import Path

import click

from dragoman_client import DetectedLanguage
from service.cli.options import Connection, connection_options, timeout_option
from service.cli.pipeline import map_chunks
from service.cli.streams import Line, arguments, locating, open_input, read_lines, write
from service.domain.translation import MAX_CHUNK_CHARACTERS


@click.command(short_help="Detect the languages of texts or lines.")
@click.argument("texts", nargs=-1)
@click.option(
    "-i",
    "--file",
    "input_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Read lines from this file.",
)
@timeout_option("Maximum time for one call, of up to 32 texts.")
@connection_options
def detect(*, texts: tuple[str, ...], input_file: Path | None, timeout_seconds: float, connection: Connection) -> None:
    """Detect the language of TEXTS or, without any, of the lines of standard input or of a file.

    Each input line gives one output line, in order: the most probable language's code, the confidence (0 to 1), and the
    line itself, separated by tabs. Where none is probable, as in a line of one word or without letters, it is "und".
    """
    if texts and input_file:
        raise click.UsageError("give either texts or --file, not both.")
    stream = None if texts else open_input(input_file)
    with connection.client(timeout_seconds) as client:
        lines = read_lines(stream) if stream else arguments(texts)
        noun = "line" if stream else "text"

        def detect_chunk(chunk: list[Line]) -> list[DetectedLanguage]:
            with locating(chunk, noun):
                return [
                    languages[0] for languages in client.detect([line.text[:MAX_CHUNK_CHARACTERS] for line in chunk])
                ]

        for chunk in map_chunks(lines, detect_chunk):
            write(sys.stdout.buffer, "".join(_rendered(line, language) for line, language in chunk))


def _rendered(line: Line, language: DetectedLanguage) -> str:
    return f"{language.language_code}\t{language.confidence:.3f}\t{line.text}{line.ending}"
