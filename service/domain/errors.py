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

Every message is one line that names what was given, what is allowed, and what to do.
"""

import reprlib
from collections.abc import Iterable
from datetime import date, time

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


class ServiceError(Exception):
    """Base of all errors that a caller is told about."""

    reason = "internal"  # the bounded label value that metrics count rejections by


class InvalidRequest(ServiceError):
    """The caller's input is wrong. `field` names the request's field, such as `texts[3]`, where there is one."""

    reason = "invalid"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class TooLong(InvalidRequest):
    """A text has more tokens than the model takes, or a call more characters than the server."""

    reason = "too_long"


class TooMany(InvalidRequest):
    """A call holds more texts, terms or the like than allowed."""

    reason = "too_many"


class NotFound(ServiceError):
    """Something that the call names is not served here: `resource_type`, such as `model`, and its name."""

    reason = "not_found"

    def __init__(self, message: str, resource_type: str = "", resource_name: str = "") -> None:
        super().__init__(message)
        self.resource_type = resource_type
        self.resource_name = resource_name


class PairNotFound(NotFound):
    """No model translates this pair. `field` is that of the two language codes which is at fault."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class Unimplemented(ServiceError):
    """The call, or an option in it, belongs to an API that this server answers in part."""

    reason = "unimplemented"


class NotPossible(ServiceError):
    """The server's settings, or what lies on disk, don't allow it; trying again won't help before they change."""

    reason = "not_possible"


class Overloaded(ServiceError):
    """The queue is full. `retry_after_seconds` is the server's estimate of when there will be room."""

    reason = "queue_full"

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message)
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
