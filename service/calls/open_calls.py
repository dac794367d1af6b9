"""Tracking of open calls, so that a stop waits for these only.

gRPC's own stop waits for more: for unresponsive peers, for calls that were begun but never sent, and occasionally for a
call that it accepted but passed to no handler (seen with 1.81, in 1 % of stops with busy callers).
"""

import asyncio


class OpenCalls:
    """Counts calls from the arrival of their message, or the start of their stream, until their answer is sent.

    Calls of `ignored` services, given by full name, don't count.
    """

    def __init__(self, ignored: tuple[str, ...] = ()) -> None:
        self._ignored = tuple(f"/{name}/" for name in ignored)
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()

    def counts(self, method: str) -> bool:
        """Return whether calls of a method, as in `/service/Method`, count."""
        return not method.startswith(self._ignored)

    def began(self) -> None:
        """Count one more."""
        self._count += 1
        self._none.clear()

    def ended(self) -> None:
        """Count one less."""
        self._count -= 1
        if not self._count:
            self._none.set()

    async def none_for(self, seconds: float) -> None:
        """Wait until no call is open, now and `seconds` later."""
        while True:
            await self._none.wait()
            await asyncio.sleep(seconds)
            if not self._count:
                return
