"""`grpc.health.v1.Health`: whether this server accepts calls.

grpcio-health-checking has a servicer, but its `Watch` drops all watchers of a service when one of them disconnects,
and can't be ended: an open watch would delay the server's stop by the whole grace period. Only its messages are used.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service.domain.errors import NotFound
from service.faces.grpc.absent_callers import write

SERVICE_NAME = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name


class HealthServicer(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Answers for the whole server (the empty name) and each of `services`; all start as NOT_SERVING."""

    def __init__(self, services: Iterable[str]) -> None:
        self._statuses = dict.fromkeys(("", *services), health_pb2.HealthCheckResponse.NOT_SERVING)
        self._changed = asyncio.Event()
        self._closed = False

    def set_serving(self, serving: bool) -> None:
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        self._statuses = dict.fromkeys(self._statuses, status)
        self._wake()

    def close(self) -> None:
        """End all watches once each has received the last status."""
        self._closed = True
        self._wake()

    async def Check(self, request: Any, context: "grpc.aio.ServicerContext[Any, Any]") -> Any:  # noqa: N802
        status = self._statuses.get(request.service)
        if status is None:
            raise NotFound("service {name} is unknown", "service", request.service, name=request.service)
        return health_pb2.HealthCheckResponse(status=status)

    async def Watch(self, request: Any, context: "grpc.aio.ServicerContext[Any, Any]") -> None:  # noqa: N802
        sent = None
        while True:
            changed = self._changed
            status = self._statuses.get(request.service, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
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
