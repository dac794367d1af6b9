"""gRPC's targets and options for one server and for several."""

import json
import re
from pathlib import Path
from typing import Any

import grpc
import pytest

from dragoman_client.targets import SERVICE_CONFIG, Target, target_of
from service.config.server_config import ServerConfig
from service.faces.dragoman import grpc as translation_servicer
from service.faces.google import grpc as google_servicer
from service.faces.grpc.server import _channel_options
from service.faces.kserve import grpc as kserve_servicer
from tests.servers import REPOSITORY


def config_of(to: Target) -> Any:
    return json.loads(str(dict(to.options)["grpc.service_config"]))


@pytest.mark.parametrize("server", ["127.0.0.1:50051", "translate.example:50051", "[::1]:50051"])
def test_one_server_is_asked_whatever_its_health(server: str) -> None:
    to = target_of(server)
    assert to.target == server
    assert list(config_of(to)) == ["methodConfig"]
    assert "grpc.default_authority" not in dict(to.options)


@pytest.mark.parametrize(
    ("server", "target", "authority"),
    [
        ("10.0.0.1:1, 10.0.0.2:2", "ipv4:10.0.0.1:1,10.0.0.2:2", "10.0.0.1:1"),
        ("[::1]:1,[fd00::2]:2", "ipv6:[::1]:1,[fd00::2]:2", "[::1]:1"),
        ("dns:///dragoman:50051", "dns:///dragoman:50051", None),
        ("ipv4:10.0.0.1:1,10.0.0.2:2", "ipv4:10.0.0.1:1,10.0.0.2:2", None),
    ],
)
def test_several_are_asked_in_turn_while_they_are_healthy(server: str, target: str, authority: str | None) -> None:
    to = target_of(server)
    assert to.target == target
    assert dict(to.options).get("grpc.default_authority") == authority
    assert config_of(to) == json.loads(SERVICE_CONFIG.read_text())


@pytest.mark.parametrize("server", ["a:1,b:2", "10.0.0.1:1,[::1]:2", "10.0.0.1,10.0.0.2", "::1:1,::1:2", "10.0.0.1:1,"])
def test_several_that_grpc_can_not_take_are_refused(server: str) -> None:
    with pytest.raises(ValueError, match=r"dns:///name:50051") as raised:
        target_of(server)
    assert server in str(raised.value)


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ("127.0.0.1", "is no HOST:PORT"),
        ("translate.example", "is no HOST:PORT"),
        ("localhost:99999", "a port from 1 to 65535"),
        ("localhost:http", "is no HOST:PORT"),
        (":50051", "is no HOST:PORT"),
        ("::1", "is no HOST:PORT"),
        ("[::1]", "is no HOST:PORT"),
        ("http://127.0.0.1:8080/", "is a URL; give host and port for gRPC, such as 127.0.0.1:50051."),
        ("https://translate.example/v1", "such as translate.example:50051, with TLS."),
        ("grpc://translate.example:50051", "such as translate.example:50051."),
    ],
)
def test_what_is_no_address_is_told_what_one_is(server: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)) as raised:
        target_of(server)
    assert str(raised.value).startswith(server)


@pytest.mark.parametrize("server", ["unix:/run/dragoman.sock", "dns:dragoman", "xds:///dragoman"])
def test_what_only_grpc_knows_is_left_to_it(server: str) -> None:
    assert target_of(server).target == server


def test_the_documented_copy_is_what_the_client_uses() -> None:
    assert (REPOSITORY / "deploy/client/service_config.json").read_text() == SERVICE_CONFIG.read_text()


def test_the_service_config_names_our_services() -> None:
    config = json.loads(SERVICE_CONFIG.read_text())
    ours = [servicer.SERVICE_NAME for servicer in (translation_servicer, google_servicer, kserve_servicer)]
    assert [name["service"] for name in config["methodConfig"][0]["name"]] == ours
    assert config["healthCheckConfig"]["serviceName"] in ours


def test_grpc_knows_every_option_that_it_is_given() -> None:
    """gRPC silently ignores options that it does not know."""
    (library,) = (Path(grpc.__file__).parent / "_cython").glob("cygrpc*.so")
    code = library.read_bytes()
    server = _channel_options(ServerConfig(max_connection_age_seconds=1), max_connections=1)
    names = {name for name, _ in (*target_of("10.0.0.1:1,10.0.0.2:2").options, *server)}
    assert {name for name in names if name.encode() not in code} == set()
    assert b"grpc.http2.min_recv_ping_interval_without_data_ms" not in code  # otherwise the search would find anything
