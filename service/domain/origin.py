"""Whose the call at hand is, for what is shared out among callers: from the outside in, and the call itself at last.

Who calls may choose nothing of it: not, as with request ids, to be taken for another caller or for several.
"""

from collections.abc import Hashable
from contextvars import ContextVar

# From the outside in: the caller, parts of him, and at last the call. Who shares something out only compares them.
Origin = tuple[Hashable, ...]

_current: ContextVar[Origin] = ContextVar("origin", default=())


def begin(*caller: Hashable) -> None:
    """This task, and those that it starts, serve a new call of this caller's: his host and connection, say."""
    _current.set((*caller, object()))


def begin_another() -> None:
    """This task, and those that it starts, serve another call of the same caller's."""
    begin(*_current.get()[:-1])


def current() -> Origin:
    """That of the call at hand; empty outside of one."""
    return _current.get()
