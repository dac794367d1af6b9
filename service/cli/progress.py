"""The progress bar of a command."""

import sys
from typing import TYPE_CHECKING, NoReturn

from service.cli.lines import count_lines
from service.cli.streams import Files

if TYPE_CHECKING:
    from tqdm import tqdm


def progress(files: Files, noun: str, total: int | None = None) -> "tqdm[NoReturn]":
    """Return a progress bar on standard error, shown only on a terminal that is used for neither input nor output.

    It shows the number done, the rate per second and, for seekable input or a known `total`, the time left.
    """
    from tqdm import tqdm  # imported here: the other commands do not need it, and should start quickly

    stream = files.input_stream
    is_visible = stream is not None and sys.stderr.isatty() and not stream.isatty()
    is_visible = is_visible and (files.output_path is not None or not sys.stdout.isatty())
    if total is None and is_visible and stream is not None and stream.seekable():
        total = count_lines(stream)
    return tqdm(total=total, unit=f" {noun}s", disable=not is_visible, file=sys.stderr, mininterval=0.2)
