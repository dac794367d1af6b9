"""The result of a check."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The severity: nothing to do, worth a look, or a server will not start or not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: a value, and what to do about it unless it is fine."""

    status: Status
    what: str
    value: str
    advice: str = ""

    @property
    def line(self) -> str:
        advice = f" {self.advice[0].upper()}{self.advice[1:]}" if self.advice else ""
        return f"{self.status:<5} {self.what:<12} {self.value.rstrip('.')}.{advice}"


def ok(what: str, value: str) -> Finding:
    return Finding(Status.OK, what, value)


def warn(what: str, value: str, advice: str) -> Finding:
    return Finding(Status.WARN, what, value, advice)


def fail(what: str, value: str, advice: str = "") -> Finding:
    """Return a problem with which a server can't work; messages of the service's own errors contain the advice."""
    return Finding(Status.FAIL, what, value, advice)
