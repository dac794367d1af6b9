"""An API as the gRPC server needs it; `http.routes.Route` is its counterpart."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import grpc

from service.domain.call import CallKind
from service.domain.translation import Priority

ReadPriority = Callable[[bytes], Priority]


@dataclass(frozen=True, slots=True)
class GrpcApi:
    """One API: the full name of its service, and what adds it to a server that has not started.

    `kinds` has the methods that translate. `keyless` methods need no API key. `listing` methods tell what is served,
    and are answered when a key's token quota is used up, too. `priority_of` reads a call's priority from the message of
    the most common methods: an overloaded server rejects these before they are served, at two thirds of the later cost.
    """

    name: str
    add_to: Callable[[grpc.aio.Server], None]
    kinds: Mapping[str, CallKind]
    keyless: Collection[str] = ()
    listing: Collection[str] = ()
    priority_of: Mapping[str, ReadPriority] = field(default_factory=dict)

    def path(self, method: str) -> str:
        return f"/{self.name}/{method}"


def normal_priority(message: bytes) -> Priority:
    return Priority.NORMAL
