"""The most recent failed calls, for operators; in memory only, and without callers' texts."""

import threading
import time
from collections import deque
from dataclasses import dataclass

from service.domain.errors import MAX_MESSAGE

NUM_KEPT = 50


@dataclass(frozen=True, slots=True)
class RecentError:
    """One failed call: when (Unix time, seconds), its request id, method, and the name and message of its status."""

    time_seconds: float
    request_id: str
    method: str
    code: str
    message: str


class RecentErrors:
    """The most recent failed calls. Thread-safe."""

    def __init__(self) -> None:
        self._errors: deque[RecentError] = deque(maxlen=NUM_KEPT)
        self._lock = threading.Lock()

    def note(self, request_id: str, method: str, code: str, message: str) -> None:
        """Add a failed call; `message` must not quote the caller's input: `ServiceError.redacted`."""
        with self._lock:
            self._errors.append(RecentError(time.time(), request_id, method, code, message[:MAX_MESSAGE]))

    def latest(self) -> list[RecentError]:
        with self._lock:
            return list(reversed(self._errors))
