"""Destination and format of log lines: text or JSON, one line each, with the id of the call they belong to.

No line contains a caller's text: of an exception in a call only type and place are logged, as its message may quote
one; `log_text` lifts this. One thread writes the lines, so that logging never waits for the reader.
"""

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from service.config.server_config import ServerConfig
from service.domain.call import NO_ID, current_call
from service.observe import access_log
from service.process.standard_streams import ERROR, QueuedText

RELOADS = "dragoman.reloads"  # the logger of reloads that succeeded

_LOG = logging.getLogger(__name__)

_HIDDEN = "(message omitted: it may quote a caller's text; see --log-text)"


def set_up(config: ServerConfig) -> None:
    """Log to standard error as configured. From now on writing there never blocks; `leave` writes what is pending."""
    sys.stderr = QueuedText(ERROR, _report_missing)
    kind = JsonFormatter if config.log_format == "json" else TextFormatter
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(kind(shows_texts=config.log_text))
    logging.basicConfig(level=config.log_level.upper(), handlers=[handler])
    logging.captureWarnings(capture=True)
    # The access log, if enabled, and that a reload succeeded, are written regardless of the log level.
    for logger in (access_log.LOGGER, RELOADS):
        logging.getLogger(logger).setLevel(logging.INFO)


def _report_missing(num_lines: int) -> None:
    _LOG.error("standard error was not read or could not be written; lines missing: %d", num_lines)


class _Formatter(logging.Formatter):
    def __init__(self, *, shows_texts: bool) -> None:
        super().__init__()
        self._shows_texts = shows_texts

    def fields(self, record: logging.LogRecord) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        call = current_call()
        if call.request_id != NO_ID:
            fields["request_id"] = call.request_id
        if call.trace_id:
            fields["trace_id"] = call.trace_id
        return fields | getattr(record, "fields", {})

    def exception(self, record: logging.LogRecord) -> str:
        if not record.exc_info or record.exc_info[1] is None:
            return ""
        error = record.exc_info[1]
        is_of_call = current_call().request_id != NO_ID
        if self._shows_texts or (record.name.startswith("service.") and not is_of_call):
            return "".join(traceback.format_exception(error)).rstrip()
        return "".join(_without_messages(error)).rstrip()


class TextFormatter(_Formatter):
    """`<time> <level> <logger>: <message> name=value ...`, followed by the lines of a traceback, if any."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={_value(value)}" for name, value in self.fields(record).items())
        line = f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}{fields}"
        return "\n".join(part for part in (line, self.exception(record)) if part)


class JsonFormatter(_Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self.fields(record),
        }
        if exception := self.exception(record):
            line["exception"] = exception
        return json.dumps(line, ensure_ascii=False, default=str)


def _time(record: logging.LogRecord) -> str:
    """Return the time in UTC, in RFC 3339 format, to the millisecond."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _value(value: object) -> str:
    """Return a single word unchanged, anything else as JSON."""
    if isinstance(value, str) and value and value.isprintable() and not any(mark in value for mark in ' "=\\'):
        return value
    return json.dumps(value, ensure_ascii=False)


def _without_messages(error: BaseException) -> Iterator[str]:
    """Yield a traceback in Python's format, causes first, but without the exceptions' messages."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _without_messages(cause)
        yield "\nwhich led to:\n\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__qualname__} {_HIDDEN}\n"
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _without_messages(each)
