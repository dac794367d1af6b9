"""What is logged while a test runs, as operators who read JSON would get it."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from service.observe.access_log import LOGGER
from service.observe.logs import JsonFormatter


class Lines(logging.Handler):
    """A log handler that keeps every line, at any level."""

    def __init__(self, *, shows_texts: bool) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(JsonFormatter(shows_texts=shows_texts))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def calls(self) -> list[dict[str, Any]]:
        return [line for line in map(json.loads, self.lines) if line["logger"] == LOGGER]


@contextmanager
def lines(*, shows_texts: bool = False) -> Iterator[Lines]:
    root, access, handler = logging.getLogger(), logging.getLogger(LOGGER), Lines(shows_texts=shows_texts)
    levels = root.level, access.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    access.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        root.removeHandler(handler)
        root.setLevel(levels[0])
        access.setLevel(levels[1])
