"""A TCP proxy on loopback that treats its connections as bad networks do."""

import asyncio
import socket
import struct
from dataclasses import dataclass
from typing import Self

from tests.servers import LoopThread

_CHUNK_BYTES = 65_536
_RESET = struct.pack("ii", 1, 0)  # closing sends a RST


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to bytes in each direction. By default they pass unchanged."""

    bytes_per_second: float = 0.0  # at most; 0: unlimited
    cut_after_bytes: int | None = None  # of what the server sends; then both sides see a reset


PASS = Fault()


class FaultProxy:
    """Listens on its own port. Call its methods from any thread but the loop's; all take effect immediately."""

    def __init__(self, loop: LoopThread, port: int, fault: Fault = PASS) -> None:
        """Put a proxy before the server on `port`; its connections get `fault`."""
        self._loop = loop
        self._upstream = port
        self._fault = fault
        self._connections: set[_Connection] = set()
        self.port = 0
        self._server: asyncio.Server | None = None
        self.accept()
        self.address = f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def meet(self, fault: Fault) -> None:
        """Apply the fault to all connections from now on, including open ones."""
        self._fault = fault
        for connection in list(self._connections):
            connection.fault = fault

    def reset(self) -> None:
        """Reset all connections on both sides."""
        self._loop.run(self._each("reset"))

    def lose_clients(self) -> None:
        """Silence both sides as if the cable were cut: no FIN, no reset. Later connections pass."""
        self._loop.run(self._each("lose"))

    def refuse(self) -> None:
        """Reject new connections until `accept`; open ones continue."""
        self._loop.run(self._refuse())

    def accept(self) -> None:
        """Accept clients again, on the same port."""
        self._loop.run(self._accept())

    def close(self) -> None:
        """Reset open connections, and close the port."""
        self._loop.run(self._refuse())
        self.reset()

    async def _accept(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _each(self, act: str) -> None:
        for connection in list(self._connections):
            getattr(connection, act)()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            _close_with_reset(writer)
            return
        connection = _Connection(self._fault, (reader, writer), upstream)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Connection:
    def __init__(self, fault: Fault, client: Streams, server: Streams) -> None:
        self.fault = fault
        self._client = client
        self._server = server
        self._num_answered = 0
        self._is_lost = False

    async def run(self) -> None:
        """Forward bytes both ways until both sides have ended, or one was reset."""
        up = asyncio.create_task(self._carry(self._client[0], self._server[1], is_answer=False))
        down = asyncio.create_task(self._carry(self._server[0], self._client[1], is_answer=True))
        _, pending = await asyncio.wait({up, down}, return_when=asyncio.FIRST_EXCEPTION)
        for task in pending:
            task.cancel()
        await asyncio.gather(up, down, return_exceptions=True)
        self.reset()

    def reset(self) -> None:
        for _, writer in (self._client, self._server):
            _close_with_reset(writer)

    def lose(self) -> None:
        self._is_lost = True

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool) -> None:
        while chunk := await reader.read(_CHUNK_BYTES):
            fault = self.fault
            if self._is_lost:
                continue
            if is_answer and fault.cut_after_bytes is not None:
                chunk = chunk[: max(fault.cut_after_bytes - self._num_answered, 0)]
                self._num_answered += len(chunk)
            await self._write(writer, chunk, fault.bytes_per_second)
            if is_answer and fault.cut_after_bytes is not None and self._num_answered >= fault.cut_after_bytes:
                raise ConnectionResetError
        if not self._is_lost and writer.can_write_eof():
            writer.write_eof()

    @staticmethod
    async def _write(writer: asyncio.StreamWriter, chunk: bytes, bytes_per_second: float) -> None:
        step = max(int(bytes_per_second / 100), 1) if bytes_per_second else len(chunk)
        for start in range(0, len(chunk), step or 1):
            piece = chunk[start : start + step]
            writer.write(piece)
            await writer.drain()
            if bytes_per_second:
                await asyncio.sleep(len(piece) / bytes_per_second)


def _close_with_reset(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    if connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
