"""All errors of a call, as one tree; `calls/failures.py` names their statuses, `faces/grpc/status.py` sends them.

ServiceError
 +-- InvalidRequest        the caller's input is wrong; a retry won't help
 +-- NotFound              no such model, version, language pair or glossary
 +-- Unimplemented         another server of the same API may support this, this one does not
 +-- NotPossible           the server's settings or the files on disk don't allow it
 +-- Overloaded            no capacity now; retry after `retry_after_seconds`
      +-- QuotaExceeded    the caller's quota is exhausted
      +-- MemoryFull       no room for the call's message or answer beside those of others
      +-- MessageTooSlow   its message did not arrive while others waited for theirs
 +-- Unauthenticated       no API key, or an invalid one
 +-- Forbidden             the caller may not do this: its key lacks the grant, or nobody may from there
 +-- Unavailable           loading, draining or restarting; another server may answer
 +-- DeadlineExceeded      the caller's deadline passed before the answer was ready
      +-- TooLate          it would have passed, so nothing was started
 +-- Cancelled             the caller disconnected
 +-- EngineFailure         the server failed while decoding this call

An error is data: its reason, the path of the request's invalid field, the value given, what is allowed and what to do.
`str` joins these into one line, in which a face spells paths in its own terms; `redacted` is that line without the
caller's texts.
"""

import reprlib
from collections.abc import Callable, Iterable
from datetime import date, time
from typing import Any

_MAX_QUOTED = 60
_MAX_LISTED = 20
MAX_MESSAGE = 300  # characters of one that is kept, or not of this package's own words


class _Short(reprlib.Repr):
    """Shortens, and limits nesting to six levels."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxlong = self.maxother = _MAX_QUOTED

    def repr_int(self, x: int, level: int) -> str:
        try:
            str(x)
        except ValueError:  # Python formats no numbers of more than 4300 digits
            return "a number of thousands of digits"
        return super().repr_int(x, level)


_SHORT = _Short()


def quoted(value: str) -> str:
    """Quote and shorten a caller's text for a message: a status is sent in 8 KiB of metadata."""
    return repr(shortened(value))


def shortened(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED else f"{text[: _MAX_QUOTED - 3]}..."


def shown(value: object) -> str:
    """Format a value from a file for a message: shortened if it is long, deep or has many digits."""
    return shortened(str(value) if isinstance(value, date | time) else _SHORT.repr(value))


def listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _MAX_LISTED} more" if len(every) > _MAX_LISTED else ""
    return (", ".join(every[:_MAX_LISTED]) or "none") + more


def counted(number: int, one: str, many: str = "") -> str:
    """Format a number with its noun for a message: `1 text`, `2 texts`; `many` is a plural that is not `one` and s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


class Path(tuple[str | int, ...]):
    """The position of a field in a request: names, and indices in lists, such as `Path("texts", 3)`."""

    __slots__ = ()

    def __new__(cls, *parts: str | int) -> "Path":
        return super().__new__(cls, parts)


class Public(str):
    """A part of a message that no caller wrote, or just a language code: shown to operators unchanged."""

    __slots__ = ()


class Quoted(str):
    """A part of a message that may contain a caller's text, already quoted and shortened."""

    __slots__ = ()


Spelling = Callable[[Path], str]


def dotted(path: Path) -> str:
    """Return a path in protobuf's notation, such as `texts[3]` or `options.top_k`; empty for an empty one."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


class ServiceError(Exception):
    """Base of all errors that are reported to callers."""

    reason = "internal"  # label value, of a bounded set, by which metrics count rejections

    def __init__(
        self, problem: str, path: Path | str = "", *, allowed: str = "", advice: str = "", **given: Any
    ) -> None:
        """Store the parts of the message.

        If there are `given` values, or if it begins with `{path}`, `problem` is a format string with these values by
        name: a caller's text is shortened and quoted, a `Path` is spelled in the terms of the API, and `Public` text
        and numbers are shown unchanged. `allowed` and `advice` follow, as clauses without a final period.
        """
        super().__init__(problem)
        self.problem = problem
        self.path = _path(path)
        self.allowed = allowed
        self.advice = advice
        self.given = given
        self.spelling: Spelling = dotted

    def __str__(self) -> str:
        return self._message(shows_texts=True)

    @property
    def redacted(self) -> str:
        return self._message(shows_texts=False)

    @property
    def field(self) -> str:
        """Return the path in the terms of the API, such as `texts[3]`; empty if no field is invalid."""
        return self.spelling(self.path) if self.path else ""

    def _message(self, *, shows_texts: bool) -> str:
        problem = self.problem
        if self.given or problem.startswith("{path}"):
            values = {name: self._formatted(value, shows_texts) for name, value in self.given.items()}
            problem = problem.format(path=self.field, **values)
        elif not (self.allowed or self.advice):
            return problem
        if not self.allowed:
            return _ended(f"{problem}; {self.advice}" if self.advice else problem)
        message = f"{problem}; allowed: {self.allowed}."
        return _ended(f"{message} {self.advice[0].upper()}{self.advice[1:]}") if self.advice else message

    def _formatted(self, value: object, shows_texts: bool) -> object:
        if isinstance(value, Path):
            return self.spelling(value)
        if not isinstance(value, str) or isinstance(value, Public):
            return value
        if not shows_texts:
            return "'…'"
        return str(value) if isinstance(value, Quoted) else quoted(value)


def _ended(message: str) -> str:
    return message if message.endswith(".") else f"{message}."


def _path(path: Path | str) -> Path:
    return path if isinstance(path, Path) else Path(path) if path else Path()


class InvalidRequest(ServiceError):
    """The caller's input is wrong. `path` is the request's field, if there is one."""

    reason = "invalid"


class TooLong(InvalidRequest):
    """A text exceeds the model's maximum tokens, or a call the server's maximum characters."""

    reason = "too_long"


class TooMany(InvalidRequest):
    """A call contains more texts, terms or the like than allowed."""

    reason = "too_many"


class NotFound(ServiceError):
    """The call refers to something that is not served here: `resource_type`, such as `model`, and its name."""

    reason = "not_found"

    def __init__(
        self, problem: str, resource_type: str = "", resource_name: str = "", *, advice: str = "", **given: Any
    ) -> None:
        super().__init__(problem, advice=advice, **given)
        self.resource_type = resource_type
        self.resource_name = resource_name


class PairNotFound(NotFound):
    """No model translates this pair. `path` is the invalid one of the two language codes."""

    def __init__(self, problem: str, path: Path | str, **given: Any) -> None:
        super().__init__(problem, **given)
        self.path = _path(path)

    def as_invalid(self) -> InvalidRequest:
        return InvalidRequest(self.problem, self.path, **self.given)


class Unimplemented(ServiceError):
    """The call, or one of its options, belongs to an API that this server supports only in part."""

    reason = "unimplemented"


class NotPossible(ServiceError):
    """The server's settings or the files on disk don't allow it; a retry won't help before they change."""

    reason = "not_possible"


class Overloaded(ServiceError):
    """The queue is full; `retry_after_seconds` estimates when there is room, 1 if others' work must end first."""

    reason = "queue_full"

    def __init__(
        self, problem: str, retry_after_seconds: float = 1.0, *, allowed: str = "", advice: str = "", **given: Any
    ) -> None:
        super().__init__(problem, allowed=allowed, advice=advice, **given)
        self.retry_after_seconds = retry_after_seconds


class QuotaExceeded(Overloaded):
    """The caller's key has exhausted a quota of its own."""

    reason = "quota"


class MemoryFull(Overloaded):
    """The bytes that the server may hold in messages and answers at a time are exhausted."""

    reason = "memory_full"


class MessageTooSlow(Overloaded):
    """The call's message did not arrive while others waited to send theirs."""

    reason = "message_too_slow"


class Unauthenticated(ServiceError):
    """The caller sent no API key, or an unknown or expired one."""

    reason = "unauthenticated"


class Forbidden(ServiceError):
    """The caller may not do this: its key was not granted it, or nobody may from there, as another site's page."""

    reason = "forbidden"


class Unavailable(ServiceError):
    """The server is not ready: loading, draining or restarting."""

    reason = "unavailable"


class DeadlineExceeded(ServiceError):
    """The caller's deadline passed."""

    reason = "deadline"


class TooLate(DeadlineExceeded):
    """The call can't finish by its deadline, so nothing was started."""


class Cancelled(ServiceError):
    """The caller disconnected."""

    reason = "cancelled"


class EngineFailure(ServiceError):
    """Decoding failed on the server's side."""

    reason = "engine_failure"
