"""`grpc.health.v1.Health`: whether this server accepts calls.

Balancers poll `Check`: it says NOT_SERVING for all of the drain delay. Clients that balance by themselves hear from
`Watch` at once, and resolve a name again only when a connection ends: it says NOT_SERVING just before that. Told
earlier, a client that knows no other server would fail until then, though DNS has the new ones.

The servicer of grpcio-health-checking won't do: its `Watch` drops all watchers of a service when one disconnects, and
can't be ended, which would delay the server's stop by the whole grace period. Only its messages are used.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service.domain.errors import NotFound
from service.faces.grpc.absent_callers import write

SERVICE_NAME = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
# From a watch's NOT_SERVING to the end of new calls: time to hear of it, and much less than the documented client's
# retries bridge, 1.5 s.
LEAVE_SECONDS = 0.2


class HealthServicer(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Answers for the whole server (the empty name) and each of `services`; all start as NOT_SERVING."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset(("", *services))
        self._status = self._watched_status = health_pb2.HealthCheckResponse.NOT_SERVING
        self._changed = asyncio.Event()
        self._closed = False

    def set_serving(self, serving: bool, *, tells_watchers: bool = True) -> None:
        statuses = health_pb2.HealthCheckResponse
        self._status = statuses.SERVING if serving else statuses.NOT_SERVING
        if tells_watchers:
            self._watched_status = self._status
            self._wake()

    def close(self) -> None:
        """End all watches once each has received the last status."""
        self._closed = True
        self._wake()

    async def Check(self, request: Any, context: "grpc.aio.ServicerContext[Any, Any]") -> Any:  # noqa: N802
        if request.service not in self._services:
            raise NotFound("service {name} is unknown", "service", request.service, name=request.service)
        return health_pb2.HealthCheckResponse(status=self._status)

    async def Watch(self, request: Any, context: "grpc.aio.ServicerContext[Any, Any]") -> None:  # noqa: N802
        is_known, sent = request.service in self._services, None
        while True:
            changed = self._changed
            status = self._watched_status if is_known else health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
            if status != sent:
                await write(context, health_pb2.HealthCheckResponse(status=status))
                sent = status
                continue  # it may have changed in the meantime
            if self._closed:
                return
            await changed.wait()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
