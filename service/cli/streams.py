"""Input and output streams of a command, lines with their endings, and errors."""

import contextlib
import errno
import functools
import io
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, TextIO

import click

from service.cli.errors import CommandError, ExitCode, OutputClosed
from service.process.standard_streams import ERROR, OUTPUT, Descriptor

MAX_LINE_BYTES = 2 * 1024 * 1024  # below the limit of one call


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number from 1, its text, and its ending: LF, CR LF, or nothing."""

    number: int
    text: str
    ending: str


def read_lines(stream: BinaryIO) -> Iterator[Line]:
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


class Files(NamedTuple):
    """The files of a command: `None` is standard input or output, no report, and no stream if there are texts."""

    input_stream: BinaryIO | None
    input_path: Path | None
    output_path: Path | None
    report_path: Path | None


def open_input(path: Path | None) -> BinaryIO:
    """Open a file, or standard input, for good: the thread that reads it may still use it when a command ends."""
    # Standard input gets its own reader: a thread still inside sys.stdin's at the interpreter's exit is a fatal error.
    try:
        if path is None and os.isatty(0):
            click.echo("Reading from the terminal; end with Ctrl-D on a line of its own.", err=True)
        return path.open("rb") if path else open(0, "rb", closefd=False)
    except OSError as error:
        raise CommandError(f"can't read {path}: {error.strerror}.", ExitCode.NO_INPUT) from error


@contextlib.contextmanager
def open_output(files: Files) -> Iterator[BinaryIO]:
    """Open the output, which must not be the input."""
    path = files.output_path
    if path is None:
        yield sys.stdout.buffer
        return
    if files.input_path is not None and path.exists() and path.samefile(files.input_path):
        raise CommandError(f"{path} is the input; write to another file.", ExitCode.USAGE)
    with create(path) as stream:
        yield stream


@contextlib.contextmanager
def create(path: Path) -> Iterator[BinaryIO]:
    """Open a file to be written. If a command fails before it writes, the file is unchanged, or is not created."""
    was_there = path.exists()
    try:
        stream = _Replacing(path)
    except OSError as error:
        raise CommandError(f"can't write {path}: {error.strerror}.", ExitCode.CANT_CREATE) from error
    with stream:
        try:
            yield stream
            stream.empty()
        except BaseException:
            if not (was_there or stream.is_emptied):
                path.unlink(missing_ok=True)
            raise


class _Replacing(io.FileIO):
    """A file that keeps its content until the first write."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "ab")
        self.is_emptied = False

    def empty(self) -> None:
        if not self.is_emptied and self.seekable():
            self.truncate(0)
        self.is_emptied = True

    def write(self, data: Any) -> int:
        self.empty()
        written = 0
        while written < len(data):
            written += super().write(memoryview(data)[written:]) or 0
        return written


def arguments(texts: tuple[str, ...]) -> Iterator[Line]:
    for number, text in enumerate(texts, start=1):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise CommandError(f"text {number} is not UTF-8.", ExitCode.DATA) from None
        yield Line(number, text, "\n")


def write(output: BinaryIO, text: str) -> None:
    """Write and flush, so that the next program in a pipe receives it."""
    write_bytes(output, text.encode())


def write_bytes(output: BinaryIO, data: bytes) -> None:
    try:
        output.write(data)
        output.flush()
    except OSError as error:
        raise_failed("writing", error)


def raise_failed(what: str, error: OSError) -> NoReturn:
    """Raise the error that ends a command when writing fails. Not `OSError`, for which click has its own exit code."""
    if isinstance(error, BrokenPipeError):
        raise OutputClosed from None
    reason = "it is closed" if error.errno == errno.EBADF else error.strerror
    raise CommandError(f"{what} failed: {reason}.", ExitCode.IO_ERROR) from error


def use_descriptors() -> None:
    """Make all printing fail as in `raise_failed` on closed standard streams; replaced streams, as in tests, stay."""
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(OUTPUT, "writing to standard output", sys.__stdout__)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(ERROR, "writing to standard error", sys.__stderr__)


def _text(number: int, what: str, given: TextIO | None) -> TextIO:
    binary = Descriptor(number, functools.partial(raise_failed, what))
    encoding, errors = (given.encoding, given.errors) if given else (None, None)
    return io.TextIOWrapper(binary, encoding, errors, write_through=True)  # type: ignore[type-var]


@contextlib.contextmanager
def locating(chunk: Sequence[Line], noun: str) -> Iterator[None]:
    """Raise a call's error, if it is about one of its texts, with the user's line instead of the index in the call."""
    from dragoman_client import ClientError  # commands without a client also use this module

    try:
        yield
    except ClientError as error:
        match error.path:
            case ("texts", int(index)):
                raise error.renamed(f"{noun} {chunk[index].number}") from None
        raise
