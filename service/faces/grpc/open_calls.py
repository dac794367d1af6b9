"""Which calls are open, so that a stop waits for these and for nothing else.

gRPC's own stop waits for more: for peers that do not react, for calls that were begun and never sent, and now and then
for a call that it took in and handed to nobody (seen with 1.81, in 1 % of stops beneath busy callers).
"""

import asyncio

import grpc

from service.faces.grpc.interceptors import Behaviour, Context, Continuation, Handler, Interceptor, around


class OpenCalls(Interceptor):
    """Counts calls from when their message is here, or their stream begins, to when all of their answer is sent.

    Must be outside of all that answers calls. Those of `ignored` services, by full name, don't count.
    """

    def __init__(self, ignored: tuple[str, ...] = ()) -> None:
        self._ignored = tuple(f"/{name}/" for name in ignored)
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """As `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)
        if details.method.startswith(self._ignored):
            return handler

        async def counted(call: Behaviour, request: object, context: Context) -> object:
            self._count += 1
            self._none.clear()
            # Not when the handler returns: its answer is yet to be sent. The stubs take no function here.
            context.add_done_callback(self._ended)  # type: ignore[arg-type]
            return await call(request, context)

        return around(handler, counted)

    async def none_for(self, seconds: float) -> None:
        """Return once no call is open, nor is one this much later."""
        while True:
            await self._none.wait()
            await asyncio.sleep(seconds)
            if not self._count:
                return

    def _ended(self, _: Context) -> None:
        self._count -= 1
        if not self._count:
            self._none.set()
