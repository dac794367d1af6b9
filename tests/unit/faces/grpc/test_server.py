"""The limits of gRPC's connections."""

from service.faces.grpc.server import connection_options


def test_who_vanished_is_noticed_within_the_documented_time() -> None:
    options = dict(connection_options(1))
    assert options["grpc.keepalive_time_ms"] + options["grpc.keepalive_timeout_ms"] == 40_000
    assert options["grpc.http2.ping_timeout_ms"] == options["grpc.keepalive_timeout_ms"]  # otherwise it takes a minute
