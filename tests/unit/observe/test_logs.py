"""The format of log lines."""

import json
import logging
import re
import sys
from contextvars import Context, copy_context
from typing import Any

import pytest

from service.domain.call import Call, begin_call
from service.observe.logs import JsonFormatter, TextFormatter

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def line_of(message: str, *arguments: Any, logger: str = "service.x", error: bool = False, **extra: Any) -> Any:
    record = logging.LogRecord(logger, logging.INFO, "x.py", 1, message, arguments, sys.exc_info() if error else None)
    vars(record).update(extra)
    return record


@pytest.fixture
def in_call() -> Context:
    """Return the context of a call that is traced."""

    def begin() -> None:
        begin_call(Call(request_id="r-1", trace_id="abc"))

    context = copy_context()
    context.run(begin)
    return context


def failing(secret: str, logger: str) -> logging.LogRecord:
    try:
        try:
            raise KeyError(secret)
        except KeyError as error:
            raise ExceptionGroup(secret, [ValueError(secret)]) from error
    except ExceptionGroup:
        record: logging.LogRecord = line_of("it failed", logger=logger, error=True)
        return record


def test_a_line_of_text(in_call: Context) -> None:
    text = TextFormatter(shows_texts=False)
    assert re.fullmatch(f"{TIME} INFO service.x: loaded a", text.format(line_of("loaded %s", "a")))
    fields = {"ms": 1.5, "model": "a b", "key": 'x"y', "none": "", "texts": ["ä"]}
    line = in_call.run(text.format, line_of("done", fields=fields))
    time, _, told = line.partition(" ")
    assert re.fullmatch(TIME, time)
    assert told == (
        'INFO service.x: done request_id=r-1 trace_id=abc ms=1.5 model="a b" key="x\\"y" none="" texts=["ä"]'
    )


def test_a_line_of_json(in_call: Context) -> None:
    text = JsonFormatter(shows_texts=False)
    line = text.format(line_of("two\nlines of %s", "ä"))
    assert "\n" not in line
    outside = json.loads(line)
    assert re.fullmatch(TIME, outside.pop("time"))
    assert outside == {"level": "info", "logger": "service.x", "message": "two\nlines of ä"}
    inside = json.loads(in_call.run(text.format, line_of("done", fields={"ms": 1.5})))
    assert (inside["request_id"], inside["trace_id"], inside["ms"]) == ("r-1", "abc", 1.5)


@pytest.mark.parametrize("kind", [JsonFormatter, TextFormatter])
def test_what_an_exception_in_a_call_says_is_left_out(kind: Any, in_call: Context) -> None:
    quiet, frank = kind(shows_texts=False), kind(shows_texts=True)
    told = in_call.run(quiet.format, failing("geheim", "service.faces.grpc"))
    assert "geheim" not in told
    for there in ("KeyError", "ExceptionGroup", "ValueError", "test_logs.py", "which led to", "raise KeyError(secret)"):
        assert there in told
    assert "geheim" not in quiet.format(failing("geheim", "asyncio"))
    assert in_call.run(frank.format, failing("geheim", "service.faces.grpc")).count("geheim") >= 3
    assert quiet.format(failing("geheim", "service.engine.engine")).count("geheim") >= 3  # not within a call


def test_an_exception_is_a_field_of_json() -> None:
    line = JsonFormatter(shows_texts=False).format(failing("why", "service.engine.engine"))
    assert "\n" not in line
    assert json.loads(line)["exception"].startswith("Traceback (most recent call last):\n")
