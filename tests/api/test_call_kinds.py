"""Metrics tell calls that translate from all others, for every method of every API."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from service.faces.grpc.reflection import SERVICE_NAMES
from service.faces.http.routes import Route
from tests.api.http_faces import send
from tests.call_kinds import KINDS, NOT_TRANSLATING
from tests.http_caller import call
from tests.patience import patient
from tests.servers import InProcessServer, Serve, eventually

Kinds = Mapping[str, str]


@pytest.fixture(scope="module")
def server(share: Serve) -> InProcessServer:
    return share(http_port=0, reflection=True)


def routes_of(server: InProcessServer) -> Sequence[Route]:
    routes = server.server.calls.routes
    assert routes is not None
    return routes.all


def methods_over_grpc(server: InProcessServer) -> Iterator[str]:
    """Yield the full names of all methods of the services that the server describes."""
    with grpc.insecure_channel(server.address) as channel:
        names = set(ProtoReflectionDescriptorDatabase(channel).get_services())
    for name in names - set(SERVICE_NAMES):  # whose streams are not counted
        for method in descriptor_pool.Default().FindServiceByName(name).methods:
            yield f"{name}/{method.name}"


def call_each(server: InProcessServer) -> None:
    """Send something empty to every method of every API."""
    for route in routes_of(server):
        call(server.http_url, route.method, re.sub(r"\{\w+\}", "x", route.path))
    send(server, "operators", "station")
    with grpc.insecure_channel(server.address) as channel:
        for method in methods_over_grpc(server):
            # On the wire, calls of all kinds of methods are alike.
            answers: Any = channel.stream_stream(f"/{method}", None, None)(iter([b""]), timeout=patient(10))
            with contextlib.suppress(grpc.RpcError):
                next(answers, None)
            answers.cancel()


def kinds_of(server: InProcessServer) -> Kinds:
    """Return the methods that have been called, and their kinds."""
    series = [dict(labels) for name, labels in server.metrics() if name == "dragoman_requests_total"]
    kinds = {(labels["method"], labels["kind"]) for labels in series}
    assert len(kinds) == len(dict(kinds)), "a method has two kinds"
    return dict(kinds)


def wrong(kinds: Kinds) -> list[str]:
    """Return the methods whose kind is not the one in `tests.call_kinds`, which has none for those of new APIs."""
    told = KINDS | dict.fromkeys(NOT_TRANSLATING, "other")
    return sorted(method for method, kind in kinds.items() if told.get(method) != kind)


def test_every_method_of_every_api_translates_or_is_known_not_to(server: InProcessServer) -> None:
    names = {route.name for route in routes_of(server)} | set(methods_over_grpc(server))
    call_each(server)
    eventually(lambda: names <= kinds_of(server).keys())
    assert wrong(kinds_of(server)) == []
    assert kinds_of(server).keys() >= KINDS.keys(), "a method in `tests.call_kinds` is not served"


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        pytest.param("http/new/translate", "other", id="a new API without a kind"),
        pytest.param("http/new/translate", "translate", id="a new API that nobody has looked at"),
        pytest.param("http/openai/chat_completions", "other", id="a translation that is none"),
        pytest.param("grpc.health.v1.Health/Check", "translate", id="a probe that is one"),
    ],
)
def test_a_method_of_the_wrong_kind_is_caught(method: str, kind: str) -> None:
    assert wrong(KINDS | {method: kind}) == [method]


def test_refusals_are_counted_from_the_first_one_on(server: InProcessServer) -> None:
    """As Prometheus's `rate` does not see the first number of a series."""
    refusals = {
        (its["method"], its["reason"])
        for name, labels in server.metrics()
        if name == "dragoman_rejected_total" and (its := dict(labels))["kind"] != "other"
    }
    own = KINDS.keys() - {"admin/translate"}  # operators' calls are not refused on arrival
    assert refusals >= {(method, reason) for method in own for reason in ("queue_full", "memory_full")}
