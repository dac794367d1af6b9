"""Tracking of open calls, so that a stop waits for these only.

gRPC's own stop waits for more: for unresponsive peers, for calls that were begun but never sent, and occasionally for a
call that it accepted but passed to no handler (seen with 1.81, in 1 % of stops with busy callers).
"""

import asyncio

import grpc

from service.faces.grpc.interceptors import Behaviour, Context, Continuation, Handler, Interceptor, around


class OpenCalls(Interceptor):
    """Counts calls from the arrival of their message, or the start of their stream, until their answer is sent.

    Must be outside all interceptors that answer calls. Calls of `ignored` services, given by full name, don't count.
    """

    def __init__(self, ignored: tuple[str, ...] = ()) -> None:
        self._ignored = tuple(f"/{name}/" for name in ignored)
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)
        if details.method.startswith(self._ignored):
            return handler

        async def counted(call: Behaviour, request: object, context: Context) -> object:
            self._count += 1
            self._none.clear()
            # Not when the handler returns: its answer has yet to be sent. The stubs accept no function here.
            context.add_done_callback(self._ended)  # type: ignore[arg-type]
            return await call(request, context)

        return around(handler, counted)

    async def none_for(self, seconds: float) -> None:
        """Wait until no call is open, now and `seconds` later."""
        while True:
            await self._none.wait()
            await asyncio.sleep(seconds)
            if not self._count:
                return

    def _ended(self, _: Context) -> None:
        self._count -= 1
        if not self._count:
            self._none.set()
