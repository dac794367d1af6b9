"""Requests that HTTP's own rules refuse, for every API: errors with a status of their own."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from service.domain.errors import (
    DeadlineExceeded,
    InvalidRequest,
    NotFound,
    Public,
    ServiceError,
    Unimplemented,
    counted,
)

IDENTITY = "identity"  # of Content-Encoding: as it is


class Refused(ServiceError):
    """A request that is refused; `status` and `headers` are those of the answer on every API."""

    status = HTTPStatus.BAD_REQUEST
    headers: Mapping[str, str] = {}


class NoSuchPath(NotFound, Refused):
    """No route has this path."""

    status = HTTPStatus.NOT_FOUND

    def __init__(self, path: str) -> None:
        super().__init__("unknown path {given}", given=path, advice="/v1/docs lists what is")


class MethodNotAllowed(Unimplemented, Refused):
    """The path has no such method."""

    status = HTTPStatus.METHOD_NOT_ALLOWED

    def __init__(self, method: str, possible: Sequence[str]) -> None:
        allowed = ", ".join(possible)
        super().__init__("{method} is not supported by this path", method=Public(method), allowed=allowed)
        self.headers = {"Allow": allowed}


class UnknownMethod(Unimplemented, Refused):
    """No path has such a method, which is one of those that llhttp knows."""

    status = HTTPStatus.NOT_IMPLEMENTED

    def __init__(self, method: str, possible: Sequence[str]) -> None:
        super().__init__("{method} is not supported", method=Public(method), allowed=", ".join(possible))


class HeadRefused(InvalidRequest, Refused):
    """The request line or the headers are too long, or one is missing."""

    def __init__(self, status: HTTPStatus, problem: str, *, allowed: str = "", advice: str = "", **given: Any) -> None:
        super().__init__(problem, allowed=allowed, advice=advice, **given)
        self.status = status


class BodyTooLarge(InvalidRequest, Refused):
    """The body has more than the allowed bytes; `size` is its size as far as it is known."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE

    def __init__(self, size: str, max_bytes: int) -> None:
        super().__init__("the body has {size} bytes", size=Public(size), allowed=f"{max_bytes}", advice="send less")


class BodyTooSlow(DeadlineExceeded, Refused):
    """The body did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT

    def __init__(self, num_bytes: int, allowed: str) -> None:
        super().__init__(
            "only {size} of the body arrived in time",
            size=Public(counted(num_bytes, "byte")),
            allowed=allowed,
            advice="send it faster, or in parts",
        )


class Encoded(InvalidRequest, Refused):
    """The body is compressed, which would let a few bytes become very many."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE

    def __init__(self, encoding: str) -> None:
        super().__init__(
            "Content-Encoding is {given}", given=encoding, allowed=IDENTITY, advice="send the body uncompressed"
        )
