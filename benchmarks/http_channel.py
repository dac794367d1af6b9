"""JSON over HTTP/1.1 for load generators: a few connections that stay open, one call at a time on each."""

import asyncio
import json
from typing import Any, Self
from urllib.parse import urlsplit

_END_OF_HEAD = b"\r\n\r\n"

_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HttpChannel:
    """Calls to one server. Those that find no free connection wait for one, as clients with a pool of them do."""

    def __init__(self, address: str, connections: int) -> None:
        """`address` is http://host:port; connections are opened when they are first needed."""
        parts = urlsplit(address)
        assert parts.hostname is not None
        self._host, self._port = parts.hostname, parts.port or 80
        self._free: asyncio.LifoQueue[_Connection | None] = asyncio.LifoQueue()
        for _ in range(connections):
            self._free.put_nowait(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while not self._free.empty():
            _close(self._free.get_nowait())

    async def post(self, path: str, document: Any) -> tuple[int, Any]:
        """Return the status code and the JSON document of the answer.

        Raises:
            OSError: the server can't be reached, or it reset the connection.
            EOFError: it closed the connection before the answer's end.
        """
        connection = await self._free.get()
        kept: _Connection | None = None
        try:
            reader, writer = connection = connection or await asyncio.open_connection(self._host, self._port)
            body = json.dumps(document).encode()
            head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            status, *lines = (await reader.readuntil(_END_OF_HEAD)).decode("latin-1").split("\r\n")
            fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            answer = json.loads(await reader.readexactly(int(fields["content-length"])))
            if fields.get("connection", "").lower() != "close":
                kept = connection
            return int(status.split()[1]), answer
        finally:
            if kept is None:
                _close(connection)
            self._free.put_nowait(kept)


def _close(connection: _Connection | None) -> None:
    if connection is not None:
        connection[1].close()
