"""Where the records of delimited text end: quotes may enclose line ends, or be characters as any other."""

import csv
from collections import deque
from collections.abc import Iterator

MAX_CELL = 2**27  # characters; the module's own limit is 128 KiB


def split_records(lines: Iterator[str], delimiter: str, *, may_be_plain: bool) -> Iterator[tuple[int, str, list[str]]]:
    """Yield records: the number of the first line, from 1, the text with its line end, and the cells.

    An open quote goes on in the next lines if it ends there. In corpora, which `may_be_plain`, a quote is a character
    as any other: a line with all cells is a record unless a quote is doubled, or open where the next has not all.
    """
    csv.field_size_limit(MAX_CELL)
    number, width, waiting = 1, -1, deque[str]()
    while line := waiting.popleft() if waiting else next(lines, ""):
        width = line.count(delimiter) if width < 0 and line.strip("\r\n") else width
        parts, is_open, is_plain = [line], line.count('"') % 2, may_be_plain and line.count(delimiter) == width
        while is_open and (line := waiting.popleft() if waiting else next(lines, "")):
            if is_plain and line.count(delimiter) == width:
                waiting.appendleft(line)
                break
            parts.append(line)
            is_open ^= line.count('"') % 2
        text, cells = parts[0], parts[0].rstrip("\r\n").split(delimiter)
        for end in (len(parts), 1) if not is_plain or len(parts) > 1 or '""' in parts[0] else ():
            quoted = _cells("".join(parts[:end]), delimiter)
            if quoted is not None and (len(quoted) == width + 1 or not may_be_plain):
                text, cells, parts = "".join(parts[:end]), quoted, parts[end - 1 :]
                break
        waiting.extendleft(reversed(parts[1:]))
        yield number, text, cells
        number += text.count("\n") or text.count("\r")


def _cells(text: str, delimiter: str) -> list[str] | None:
    """Return the cells of a record whose quotes are those of CSV; `None` if the text is not exactly one."""
    try:
        records = list(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    return records[0] if len(records) == 1 else None
