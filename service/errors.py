"""Everything that can go wrong with a call, as one tree; `rpc.status` maps it to gRPC status codes.

ServiceError
 +-- InvalidRequest        the caller's input is wrong; trying again won't help
 +-- NotFound              no such model, version or language pair
 +-- Unsupported           no such method or parameter of a method here
 +-- NotPossible           the server's settings, or what lies on disk, don't allow it
 +-- Overloaded            no room now; try again after `retry_after_seconds`
 +-- Unavailable           loading, draining or restarting; another server may answer
 +-- DeadlineExceeded      the caller's deadline passed before the answer was there
 +-- Cancelled             the caller went away
 +-- EngineFailure         the server's own fault while decoding this call

Every message is one line that names what was given, what is allowed, and what to do.
"""


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
    """A text has more tokens than the model takes."""

    reason = "too_long"


class TooMany(InvalidRequest):
    """A call holds more texts than allowed."""

    reason = "too_many"


class NotFound(ServiceError):
    """The model, version or language pair is not served here."""

    reason = "not_found"


class Unsupported(ServiceError):
    """A method, or something asked of it, that an API has and this server has not."""

    reason = "unsupported"


class NotPossible(ServiceError):
    """The server's settings, or what lies on disk, don't allow it; trying again won't help before they change."""

    reason = "not_possible"


class Overloaded(ServiceError):
    """The queue is full. `retry_after_seconds` is the server's estimate of when there will be room."""

    reason = "queue_full"

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(ServiceError):
    """The server is not ready: loading, draining or restarting."""

    reason = "unavailable"


class DeadlineExceeded(ServiceError):
    """The caller's deadline passed."""

    reason = "deadline"


class Cancelled(ServiceError):
    """The caller went away."""

    reason = "cancelled"


class EngineFailure(ServiceError):
    """Decoding failed on the server's side."""

    reason = "engine_failure"
