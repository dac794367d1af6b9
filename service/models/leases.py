"""Counts the calls that use a model, so that it can be released once there are none."""

import asyncio
import contextlib
from collections.abc import Iterator


class Leases:
    """The calls that hold one model. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self.num_held = 0
        self._none_held = asyncio.Event()
        self._none_held.set()

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the model's engine running for the duration of a call."""
        self.num_held += 1
        self._none_held.clear()
        try:
            yield
        finally:
            self.num_held -= 1
            if not self.num_held:
                self._none_held.set()

    async def none_held(self, timeout_seconds: float) -> bool:
        """Wait until no call holds the model; returns false if some still do after the timeout."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._none_held.wait(), timeout_seconds)
        return self._none_held.is_set()
