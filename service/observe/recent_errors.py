"""The last calls that failed, for operators to look at; kept in memory only, and without what callers wrote."""

import re
import threading
import time
from collections import deque
from dataclasses import dataclass

NUM_KEPT = 50
_MAX_CHARACTERS = 300
# What messages show of a call is always in quotes (`errors.quoted`), as Python's repr makes them.
_QUOTED = re.compile(r"""(?<!\w)(['"])((?:\\.|(?!\1).)*)\1""", re.DOTALL)
_LANGUAGE_CODE = re.compile("[A-Za-z]{2,3}([-_][A-Za-z]{4})?([-_]([A-Za-z]{2}|[0-9]{3}))?")


@dataclass(frozen=True, slots=True)
class RecentError:
    """One failed call: when (Unix time, seconds), its request id, method, and the name and message of its status."""

    time_seconds: float
    request_id: str
    method: str
    code: str
    message: str


class RecentErrors:
    """Thread-safe."""

    def __init__(self) -> None:
        self._errors: deque[RecentError] = deque(maxlen=NUM_KEPT)
        self._lock = threading.Lock()

    def note(self, request_id: str, method: str, code: str, message: str) -> None:
        """A call failed. What its message quotes may be a part of a customer's text: only language codes stay."""
        shown = _QUOTED.sub(_without_text, message)[:_MAX_CHARACTERS]
        with self._lock:
            self._errors.append(RecentError(time.time(), request_id, method, code, shown))

    def latest(self) -> list[RecentError]:
        """The last `NUM_KEPT`, the newest first."""
        with self._lock:
            return list(reversed(self._errors))


def _without_text(quoted: re.Match[str]) -> str:
    return quoted[0] if _LANGUAGE_CODE.fullmatch(quoted[2]) else "'…'"
