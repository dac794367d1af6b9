"""Checks of the ports that the settings name, and who has one that is taken."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from service.cli.doctor.finding import Finding, fail, ok
from service.config.server_config import ServerConfig
from service.process.ports import PortError, check_port, join_address

_LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp; see proc_net_tcp(5)


def ports(config: ServerConfig) -> Iterator[Finding]:
    """Yield whether each port can be listened on; if not, by whom it is used."""
    for purpose, host, port, flag in (
        ("gRPC", config.host, config.port, "--port"),
        ("HTTP", config.http_host, config.http_port, "--http-port"),
        ("metrics", config.metrics_host, config.metrics_port, "--metrics-port"),
        ("status page", config.admin_host, config.admin_port, "--admin-port"),
    ):
        if port < 0:
            continue
        address = join_address(host, port)
        try:
            check_port(host, port, purpose, flag)
        except PortError as error:
            user = listener(port)
            yield fail("port", str(error), f"it is used by {user}." if user else "")
        else:
            yield ok("port", f"{address} is free for {purpose}" if port else f"any free one for {purpose}")


def listener(port: int, processes: Path = Path("/proc")) -> str:
    """Return the name and number of the process that listens on a port; empty if this user can't see it."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (processes / "net" / table).read_text(encoding="ascii").splitlines()[1:]:
                _, local, _, state, *rest = line.split()
                if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{rest[5]}]")
    for process in processes.iterdir() if sockets else ():
        with suppress(OSError):
            if process.name.isdecimal() and any(str(each.readlink()) in sockets for each in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"{name}, process {process.name}"
    return ""
