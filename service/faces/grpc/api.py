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

    `kinds` has the methods that translate. Calls of the `keyless` methods need no API key. Those of the `listing`
    methods tell what is served, and are answered when a key's quota of tokens is used up, too. `priority_of` has the
    most common methods, and how to read a call's priority from its message: an overloaded server must spend its time on
    the calls it has admitted, and rejecting one of these before it is served costs two thirds of what it does later.
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
