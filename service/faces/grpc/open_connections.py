"""The number of gRPC's connections, read from channelz: gRPC for Python has no other interface to it."""

import json
from contextlib import suppress

from grpc._cython import cygrpc  # type: ignore[attr-defined]

_ALL = 2**31 - 1  # on one page


def num_connections() -> int:
    """Return the number of open connections of this process's gRPC servers.

    Thread-safe. Those closed because of `grpc.max_allowed_incoming_connections` are counted nowhere.
    """
    servers = json.loads(cygrpc.channelz_get_servers(0)).get("server", ())
    return sum(_num_connections(int(server["ref"]["serverId"])) for server in servers)


def _num_connections(server_id: int) -> int:
    with suppress(ValueError):  # it has just been stopped
        return len(json.loads(cygrpc.channelz_get_server_sockets(server_id, 0, _ALL)).get("socketRef", ()))
    return 0
