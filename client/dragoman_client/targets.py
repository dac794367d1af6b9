"""gRPC's target and channel options for one server, or for several with load balancing."""

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

SERVICE_CONFIG = Path(__file__).with_name("service_config.json")

_TARGETS_OF_SEVERAL = ("dns:", "ipv4:", "ipv6:")
_OTHER_TARGETS = ("unix:", "unix-abstract:", "vsock:", "xds:")  # of gRPC
# A restarted server is found again within this time; gRPC's own bounds are 2 minutes, and 30 seconds for names.
_MAX_RECONNECT_SECONDS = 1
_MIN_RESOLUTION_SECONDS = 5
# The bytes of a call that are kept for retrying: the longest that a server accepts. gRPC's own bound is 256 KiB.
_RETRIED_BYTES = 8 * 2**20
# A vanished machine is detected within the sum of these; servers allow a ping every 10 s.
KEEPALIVE_SECONDS = 20
PING_TIMEOUT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Target:
    """The arguments of `grpc.insecure_channel` and all other channels."""

    target: str
    options: tuple[tuple[str, str | int], ...]


def target_of(server: str) -> Target:
    """Return the target of `host:port`, several comma-separated `ip:port`, or a target such as `dns:///name:port`.

    Calls that no server has begun, or that a stopping server abandoned, are retried. Several servers, such as all
    addresses behind a target, get calls in turn, each as long as its health is SERVING. A single address is called
    regardless of its health: behind a proxy, the health would be that of one server.

    Raises:
        ValueError: an address without a port, of the web, or several that are not all IPv4 or all IPv6.
    """
    config = json.loads(SERVICE_CONFIG.read_text(encoding="utf-8"))
    target, more = server, tuple[tuple[str, str], ...]()
    if "," in server and not server.startswith(_TARGETS_OF_SEVERAL):
        addresses = [address.strip() for address in server.split(",")]
        target = _target_of_several(addresses)
        more = (("grpc.default_authority", addresses[0]),)  # gRPC would send all of them, as if they were one host
    if not target.startswith(_TARGETS_OF_SEVERAL):
        _check_address(target)
        config = {"methodConfig": config["methodConfig"]}
    options: tuple[tuple[str, str | int], ...] = (
        ("grpc.service_config", json.dumps(config)),
        ("grpc.per_rpc_retry_buffer_size", _RETRIED_BYTES),
        ("grpc.max_reconnect_backoff_ms", _MAX_RECONNECT_SECONDS * 1000),
        ("grpc.dns_min_time_between_resolutions_ms", _MIN_RESOLUTION_SECONDS * 1000),
        ("grpc.keepalive_time_ms", KEEPALIVE_SECONDS * 1000),
        ("grpc.keepalive_timeout_ms", PING_TIMEOUT_SECONDS * 1000),
        ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_SECONDS * 1000),  # of all other pings, which delay keepalive's
        *more,
    )
    return Target(target, options)


def _check_address(server: str) -> None:
    """Refuse what gRPC would take for a host and its default port, 443, or for a name that nothing resolves."""
    if server.startswith(_OTHER_TARGETS):
        return
    scheme, is_url, rest = server.partition("://")
    if is_url:
        tls = ", with TLS" if scheme == "https" else ""
        name = rest.partition("/")[0].partition(":")[0]
        raise ValueError(f"{server} is a URL; give host and port for gRPC, such as {name}:50051{tls}.")
    host, colon, port = server.rpartition(":")
    if not (colon and host and port.isdecimal() and 0 < int(port) < 2**16) or (":" in host and host[0] != "["):
        raise ValueError(f"{server} is no HOST:PORT, with a port from 1 to 65535; give it as in 127.0.0.1:50051.")


def _target_of_several(addresses: list[str]) -> str:
    versions = {_ip_version(address) for address in addresses}
    if len(versions) != 1 or 0 in versions:
        raise ValueError(
            f"several servers must be given as IP addresses, all IPv4 or all IPv6; these are {','.join(addresses)}. "
            "Give 10.0.0.1:50051,10.0.0.2:50051, or dns:///name:50051 for all addresses of a name."
        )
    return f"ipv{versions.pop()}:{','.join(addresses)}"


def _ip_version(address: str) -> int:
    """Return 4 or 6; 0 if it is not an IP address with a port."""
    host, colon, port = address.rpartition(":")
    try:
        version = ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).version
    except ValueError:
        return 0
    return version if colon and port.isdecimal() and host.startswith("[") == (version == 6) else 0
