"""Reading of text line by line, keeping the line endings for the output."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from service.cli.command_error import CommandError
from service.cli.exit_codes import ExitCode

MAX_LINE_BYTES = 2 * 1024 * 1024  # below the limit of one call


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number from 1, its text, and its ending: LF, CR LF, or nothing."""

    number: int
    text: str
    ending: str


def read_lines(stream: BinaryIO) -> Iterator[Line]:
    """Yield the lines of a UTF-8 stream as they come in."""
    number = 0
    while True:
        number += 1
        try:
            raw = stream.readline(MAX_LINE_BYTES + 1)
        except OSError as error:
            raise CommandError(f"reading line {number} failed: {error.strerror}.", ExitCode.IO_ERROR) from error
        if not raw:
            return
        text = _decoded(raw, f"line {number}")
        body = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
        yield Line(number, body, text[len(body) :])


def _decoded(raw: bytes, what: str) -> str:
    if len(raw) > MAX_LINE_BYTES:
        raise CommandError(f"{what} is longer than {MAX_LINE_BYTES} bytes; split it into smaller ones.", ExitCode.DATA)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{what} is not UTF-8 (byte {error.start + 1} is 0x{raw[error.start]:02x}); "
            "convert the input, for example with iconv.",
            ExitCode.DATA,
        ) from None


def count_lines(stream: BinaryIO) -> int:
    """Count the lines from here to the end of a seekable stream, whose position is restored."""
    start = stream.tell()
    count, last = 0, b"\n"
    while block := stream.read(1 << 20):
        count += block.count(b"\n")
        last = block[-1:]
    stream.seek(start)
    return count + (last != b"\n")
