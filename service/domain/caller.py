"""Whose call this task serves: for quotas, logs and metrics."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol


class Accounts(Protocol):
    """Where calls are admitted and what they use is written down."""

    def call(self, caller: "Caller") -> AbstractContextManager[None]:
        """One call of the caller's, as long as it takes."""

    def charge(self, name: str, num_tokens: int) -> None:
        """A call of this key's has used so many tokens."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The name of the caller's key, and the key as it was sent."""

    name: str
    key: str = field(repr=False)
    accounts: Accounts = field(repr=False)


_current: ContextVar[Caller | None] = ContextVar("caller", default=None)


@contextmanager
def on_behalf_of(caller: Caller) -> Iterator[None]:
    """What runs within, and the tasks that it starts, is done for this caller."""
    token = _current.set(caller)
    try:
        yield
    finally:
        _current.reset(token)


def name() -> str:
    """The name of the key that the call at hand came with; empty if none was asked for."""
    caller = _current.get()
    return caller.name if caller else ""


def call() -> AbstractContextManager[None]:
    """One call of the caller's, as long as it takes.

    Raises:
        Unauthenticated: the key has been taken back meanwhile.
        QuotaExceeded: the call is one too many.
    """
    caller = _current.get()
    return caller.accounts.call(caller) if caller else nullcontext()


def charge(num_tokens: int) -> None:
    """The call at hand has used so many tokens."""
    caller = _current.get()
    if caller:
        caller.accounts.charge(caller.name, num_tokens)
