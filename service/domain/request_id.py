"""The request id of the call at hand: taken from the caller's metadata or made here."""

import os
import re
from collections.abc import Iterable
from contextvars import ContextVar

METADATA_KEY = "x-request-id"
NONE = "-"  # outside of a call

_VALID = re.compile(r"[\x21-\x7e]{1,128}")
_current: ContextVar[str] = ContextVar("request_id", default=NONE)


def begin(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """Take the caller's id out of the call's metadata, or make one up if there is none that can be used."""
    given = next((value for key, value in metadata if key == METADATA_KEY), "")
    is_good = isinstance(given, str) and _VALID.fullmatch(given)
    request_id = str(given) if is_good else os.urandom(8).hex()
    _current.set(request_id)
    return request_id


def current() -> str:
    """Id of the call that this task serves; `NONE` outside of one."""
    return _current.get()
