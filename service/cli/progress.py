"""The progress bar of a command."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from service.cli.lines import count_lines

if TYPE_CHECKING:
    from tqdm import tqdm


def progress(
    stream: BinaryIO | None, output_file: Path | None, num_done: int, noun: str, total: int | None = None
) -> "tqdm[NoReturn]":
    """Return a progress bar on standard error, shown only on a terminal that is used for neither input nor output.

    It shows the number done, the rate per second and, for seekable input or a known `total`, the time left. `num_done`
    is the number done by an earlier run.
    """
    from tqdm import tqdm  # imported here: the other commands do not need it, and should start quickly

    is_visible = stream is not None and sys.stderr.isatty() and not stream.isatty()
    is_visible = is_visible and (output_file is not None or not sys.stdout.isatty())
    if noun == "document":
        total = 1
    elif total is None and is_visible and stream is not None and stream.seekable():
        total = num_done + count_lines(stream)
    return tqdm(
        total=total, initial=num_done, unit=f" {noun}s", disable=not is_visible, file=sys.stderr, mininterval=0.2
    )
