"""Everything that can go wrong with a call, as one tree; `rpc.status` maps it to gRPC status codes.

ServiceError
 +-- InvalidRequest        the caller's input is wrong; trying again won't help
 +-- NotFound              no such model, version, language pair or glossary
 +-- Unimplemented         another server of the same API may do this, this one does not
 +-- NotPossible           the server's settings, or what lies on disk, don't allow it
 +-- Overloaded            no room now; try again after `retry_after_seconds`
      +-- QuotaExceeded    no room for this caller
      +-- MemoryFull       no room for the call's message or answer beside those of others
      +-- MessageTooSlow   its message did not arrive while others waited for theirs
 +-- Unauthenticated       no API key, or one that is not good
 +-- Unavailable           loading, draining or restarting; another server may answer
 +-- DeadlineExceeded      the caller's deadline passed before the answer was there
      +-- TooLate          it would have passed, so nothing was begun
 +-- Cancelled             the caller went away
 +-- EngineFailure         the server's own fault while decoding this call

An error is data: its reason, the path of the request's field that is at fault, what the caller gave, what is allowed
and what to do. `str` puts these into one line, in which a face spells paths in its own terms; `redacted` is that line
without the texts that the caller gave.
"""

import reprlib
from collections.abc import Callable, Iterable
from datetime import date, time
from typing import Any

_MAX_QUOTED = 60
_MAX_LISTED = 20
_SHORT = reprlib.Repr()  # goes six levels deep
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = _MAX_QUOTED


def quoted(value: str) -> str:
    """A caller's text as a message shows it, which is never long: a status travels in 8 KiB of metadata."""
    return repr(value if len(value) <= _MAX_QUOTED else f"{value[: _MAX_QUOTED - 3]}...")


def shown(value: object) -> str:
    """A value that a file holds as a message shows it: however long, or deep, or written with how many digits."""
    try:
        text = str(value) if isinstance(value, date | time) else _SHORT.repr(value)
    except ValueError:  # Python writes no numbers of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= _MAX_QUOTED else f"{text[: _MAX_QUOTED - 3]}..."


def listed(names: Iterable[str]) -> str:
    """What there is, as a message tells it: the first of many, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - _MAX_LISTED} more" if len(every) > _MAX_LISTED else ""
    return (", ".join(every[:_MAX_LISTED]) or "none") + more


class Path(tuple[str | int, ...]):
    """Where a field is in a request: names, and indices in lists, such as `Path("texts", 3)`."""

    __slots__ = ()

    def __new__(cls, *parts: str | int) -> "Path":
        """Make a path of names and indices."""
        return super().__new__(cls, parts)


class Public(str):
    """A part of a message that no caller wrote, or nothing but a language code: shown to operators as it is."""

    __slots__ = ()


class Quoted(str):
    """A part of a message that may hold a caller's words, in quotes and short enough already."""

    __slots__ = ()


Spelling = Callable[[Path], str]


def dotted(path: Path) -> str:
    """Return a path as protobuf writes it, such as `texts[3]` or `options.top_k`; nothing for an empty one."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


class ServiceError(Exception):
    """Base of all errors that a caller is told about."""

    reason = "internal"  # the bounded label value that metrics count rejections by

    def __init__(
        self, problem: str, path: Path | str = "", *, allowed: str = "", advice: str = "", **given: Any
    ) -> None:
        """Keep the parts of the message.

        `problem` says in words what is wrong. If there is anything `given`, or if it begins with `{path}`, it is a
        format string, in which each name stands for what was given under it: a caller's text is shortened and quoted, a
        `Path` is spelled in the terms of the API, and `Public` text and numbers are shown as they are. `allowed` and
        `advice` follow, as clauses without a final point.
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
        """The message without the texts that the caller gave."""
        return self._message(shows_texts=False)

    @property
    def field(self) -> str:
        """The path in the terms of the API, such as `texts[3]`; empty if no field is at fault."""
        return self.spelling(self.path) if self.path else ""

    def _message(self, *, shows_texts: bool) -> str:
        problem = self.problem
        if self.given or problem.startswith("{path}"):
            shown = {name: self._shown(value, shows_texts) for name, value in self.given.items()}
            problem = problem.format(path=self.field, **shown)
        elif not (self.allowed or self.advice):
            return problem
        if not self.allowed:
            return _ended(f"{problem}; {self.advice}" if self.advice else problem)
        several = isinstance(self, TooMany | TooLong) or ", " in self.allowed
        message = f"{problem}; allowed {'are' if several else 'is'} {self.allowed}."
        return _ended(f"{message} {self.advice[0].upper()}{self.advice[1:]}") if self.advice else message

    def _shown(self, value: object, shows_texts: bool) -> str:
        if isinstance(value, Path):
            return self.spelling(value)
        if not isinstance(value, str) or isinstance(value, Public):
            return str(value)
        if not shows_texts:
            return "'…'"
        return str(value) if isinstance(value, Quoted) else quoted(value)


def _ended(message: str) -> str:
    return message if message.endswith(".") else f"{message}."


def _path(path: Path | str) -> Path:
    return path if isinstance(path, Path) else Path(path) if path else Path()


class InvalidRequest(ServiceError):
    """The caller's input is wrong. `path` is the request's field, where there is one."""

    reason = "invalid"


class TooLong(InvalidRequest):
    """A text has more tokens than the model takes, or a call more characters than the server."""

    reason = "too_long"


class TooMany(InvalidRequest):
    """A call holds more texts, terms or the like than allowed."""

    reason = "too_many"


class NotFound(ServiceError):
    """Something that the call names is not served here: `resource_type`, such as `model`, and its name."""

    reason = "not_found"

    def __init__(
        self, problem: str, resource_type: str = "", resource_name: str = "", *, advice: str = "", **given: Any
    ) -> None:
        super().__init__(problem, advice=advice, **given)
        self.resource_type = resource_type
        self.resource_name = resource_name


class PairNotFound(NotFound):
    """No model translates this pair. `path` is that of the two language codes which is at fault."""

    def __init__(self, problem: str, path: Path | str, **given: Any) -> None:
        super().__init__(problem, **given)
        self.path = _path(path)

    def as_invalid(self) -> InvalidRequest:
        """Return the same error for an API that has codes of languages, but no pairs."""
        return InvalidRequest(self.problem, self.path, **self.given)


class Unimplemented(ServiceError):
    """The call, or an option in it, belongs to an API that this server answers in part."""

    reason = "unimplemented"


class NotPossible(ServiceError):
    """The server's settings, or what lies on disk, don't allow it; trying again won't help before they change."""

    reason = "not_possible"


class Overloaded(ServiceError):
    """The queue is full. `retry_after_seconds` is the server's estimate of when there will be room."""

    reason = "queue_full"

    def __init__(self, problem: str, retry_after_seconds: float) -> None:
        super().__init__(problem)
        self.retry_after_seconds = retry_after_seconds


class QuotaExceeded(Overloaded):
    """The caller's key has used up a quota of its own."""

    reason = "quota"


class MemoryFull(Overloaded):
    """The bytes of messages and answers that the server may hold at a time are used up."""

    reason = "memory_full"


class MessageTooSlow(Overloaded):
    """The call's message did not arrive while others waited to send theirs."""

    reason = "message_too_slow"


class Unauthenticated(ServiceError):
    """The caller sent no API key, or one that is unknown or has expired."""

    reason = "unauthenticated"


class Unavailable(ServiceError):
    """The server is not ready: loading, draining or restarting."""

    reason = "unavailable"


class DeadlineExceeded(ServiceError):
    """The caller's deadline passed."""

    reason = "deadline"


class TooLate(DeadlineExceeded):
    """The call can't be done by its deadline, so nothing was begun."""


class Cancelled(ServiceError):
    """The caller went away."""

    reason = "cancelled"


class EngineFailure(ServiceError):
    """Decoding failed on the server's side."""

    reason = "engine_failure"
