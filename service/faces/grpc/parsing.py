"""Parsing of messages, so that an invalid one is reported as the caller's error, not the server's."""

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import DecodeError

from service.domain.errors import InvalidRequest

T = TypeVar("T")


def parse(deserialize: Callable[[bytes], T], message: bytes) -> T:
    """Parse a message.

    Raises:
        InvalidRequest: the bytes are not a valid message.
    """
    try:
        return deserialize(message)
    except DecodeError as error:
        raise InvalidRequest(
            "the request is not a valid message of this method", advice="check that its text is valid UTF-8"
        ) from error
