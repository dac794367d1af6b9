"""The permitted number of connections."""

import resource

import pytest

from service.faces.grpc.server import connection_options


@pytest.mark.parametrize(("descriptors", "expected"), [(20_000, 10_000), (1024, 768), (400, 200), (1, 1)])
def test_as_many_as_there_are_descriptors_for(monkeypatch: pytest.MonkeyPatch, descriptors: int, expected: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, 20_000))
    assert dict(connection_options(10_000))["grpc.max_allowed_incoming_connections"] == expected


def test_who_vanished_is_noticed_within_the_documented_time() -> None:
    options = dict(connection_options(1))
    assert options["grpc.keepalive_time_ms"] + options["grpc.keepalive_timeout_ms"] == 40_000
    assert options["grpc.http2.ping_timeout_ms"] == options["grpc.keepalive_timeout_ms"]  # otherwise it takes a minute
