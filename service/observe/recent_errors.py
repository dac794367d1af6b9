"""The last calls that failed, for operators to look at; kept in memory only, and without what callers wrote."""

import threading
import time
from collections import deque
from dataclasses import dataclass

NUM_KEPT = 50
_MAX_CHARACTERS = 300


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
        """Keep a failed call; `message` holds nothing that its caller wrote: `ServiceError.redacted`."""
        shown = message[:_MAX_CHARACTERS]
        with self._lock:
            self._errors.append(RecentError(time.time(), request_id, method, code, shown))

    def latest(self) -> list[RecentError]:
        """The last `NUM_KEPT`, the newest first."""
        with self._lock:
            return list(reversed(self._errors))
