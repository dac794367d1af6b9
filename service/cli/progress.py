"""How far a command is, for who watches."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from service.cli.lines import count_lines

if TYPE_CHECKING:
    from tqdm import tqdm


def progress(stream: BinaryIO | None, output_file: Path | None, num_done: int, noun: str) -> "tqdm[NoReturn]":
    """A bar on standard error, if somebody watches it and neither types the input nor reads the output there.

    It tells what is done, how much that is in a second, and, of an input that can be looked through, the time left.
    `num_done` is what an earlier run did.
    """
    from tqdm import tqdm  # here: the other commands have no use for it, and should start at once

    shown = stream is not None and sys.stderr.isatty() and not stream.isatty()
    shown = shown and (output_file is not None or not sys.stdout.isatty())
    total = None
    if noun == "document":
        total = 1
    elif shown and stream is not None and stream.seekable():
        total = num_done + count_lines(stream)
    return tqdm(total=total, initial=num_done, unit=f" {noun}s", disable=not shown, file=sys.stderr, mininterval=0.2)
