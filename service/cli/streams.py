"""Where a command's texts come from and where its answers go, and what goes wrong there."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from service.cli import exit_codes
from service.cli.command_error import CommandError, OutputClosed
from service.cli.lines import Line
from service.client import ClientError


class Numbered(Protocol):
    """What the user knows by its number."""

    @property
    def number(self) -> int:
        """From 1."""


@contextlib.contextmanager
def open_input(path: Path | None) -> Iterator[BinaryIO]:
    """Open a file, or standard input."""
    # Standard input gets a reader of its own: a thread that is still inside sys.stdin's when the interpreter exits
    # is a fatal error.
    try:
        stream = path.open("rb") if path else open(0, "rb", closefd=False)  # noqa: SIM115
    except OSError as error:
        raise CommandError(f"can't read {path}: {error.strerror}.", exit_codes.NO_INPUT) from error
    yield stream  # left open: the reading thread may still be in it


def arguments(texts: tuple[str, ...]) -> Iterator[Line]:
    """Texts of the command line as lines."""
    for number, text in enumerate(texts, start=1):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise CommandError(f"text {number} is not UTF-8.", exit_codes.DATA) from None
        yield Line(number, text, "\n")


def write(output: BinaryIO, text: str) -> None:
    """Write at once, so that the next program in a pipe sees it."""
    try:
        output.write(text.encode())
        output.flush()
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as error:
        raise CommandError(f"writing failed: {error.strerror}.", exit_codes.IO_ERROR) from error


def located(error: ClientError, chunk: Sequence[Numbered], noun: str) -> ClientError:
    """Name the user's line instead of the place in the call that it happened to be sent in."""
    place = re.fullmatch(r"texts\[(\d+)\]", error.field)
    if place is None:
        return error
    where = f"{noun} {chunk[int(place[1])].number}"
    error.args = (str(error).replace(error.field, where, 1),)
    return error
