"""The output file of a command: a new one, or an unfinished one of an earlier run."""

import contextlib
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from service.cli.command_error import CommandError
from service.cli.exit_codes import ExitCode
from service.cli.lines import Line


@contextlib.contextmanager
def open_output(
    path: Path | None, input_path: Path | None = None, lines_to_resume: Iterator[Line] | None = None
) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file for writing, or standard output; also yield the number of lines that it already has.

    Without `lines_to_resume`, the file is overwritten. With these lines of the input, writing continues after the
    file's last complete line, and as many lines are consumed from them. Text after the last line feed is cut off: the
    run that wrote it was interrupted, or it is the last line of an input without a final line feed, and is written
    again.
    """
    if path is None:
        yield sys.stdout.buffer, 0
        return
    exists = path.exists()
    if exists and input_path is not None and path.samefile(input_path):
        raise CommandError(f"{path} is the input; write to another file.", ExitCode.USAGE)
    if lines_to_resume is None or not exists:
        with _opened(path, "wb") as stream:
            yield stream, 0
        return
    if not path.is_file():
        raise CommandError(f"{path} is not a regular file, which --resume needs.", ExitCode.USAGE)
    with _opened(path, "r+b") as stream:
        num_lines, end = _whole_lines(stream)
        num_taken = sum(1 for _ in islice(lines_to_resume, num_lines))
        if num_taken < num_lines:
            raise CommandError(
                f"{path} has {num_lines} lines and the input only {num_taken}, so it was not made from this input; "
                "name another file, or leave out --resume to overwrite it.",
                ExitCode.DATA,
            )
        stream.seek(end)
        stream.truncate()
        yield stream, num_lines


def _opened(path: Path, mode: str) -> BinaryIO:
    try:
        return cast(BinaryIO, path.open(mode))
    except OSError as error:
        raise CommandError(f"can't write {path}: {error.strerror}.", ExitCode.CANT_CREATE) from error


def _whole_lines(stream: BinaryIO) -> tuple[int, int]:
    """Return the number of lines that end with a line feed, and the position after the last of them."""
    num_lines = end = position = 0
    while block := stream.read(1 << 20):
        num_lines += block.count(b"\n")
        last = block.rfind(b"\n") + 1
        end = position + last if last else end
        position += len(block)
    return num_lines, end
