"""A TCP proxy on loopback that treats its connections as bad networks do."""

import asyncio
import socket
import struct
from dataclasses import dataclass
from typing import Self

from tests.servers import LoopThread

_CHUNK_BYTES = 65_536
_RESET = struct.pack("ii", 1, 0)  # closing sends a RST


@dataclass(slots=True)
class Fault:
    """What happens to what the server sends. By default it passes unchanged."""

    bytes_per_second: float = 0.0  # at most; 0: unlimited
    cut_after_bytes: int | None = None  # then both sides see a reset


class FaultProxy:
    """Listens on its own port. Call its methods from any thread but the loop's; all take effect immediately."""

    def __init__(self, loop: LoopThread, port: int) -> None:
        """Put a proxy before the server on `port`; its connections get `fault`, which may be set at any time."""
        self.fault = Fault()
        self._loop, self._upstream, self._port = loop, port, 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_lost = asyncio.Event()  # for the connections of now
        self.accept()
        self.address = f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self.reset()

    def reset(self) -> None:
        """Reset all connections on both sides."""
        self._loop.run(self._reset())

    def lose_clients(self) -> None:
        """Silence both sides as if the cable were cut: no FIN, no reset. Later connections pass."""
        self._is_lost.set()
        self._is_lost = asyncio.Event()

    def refuse(self) -> None:
        """Reject new connections until `accept`; open ones continue."""
        self._loop.run(self._refuse())

    def accept(self) -> None:
        """Accept clients again, on the same port."""
        self._loop.run(self._accept())

    async def _accept(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _refuse(self) -> None:
        self._server.close()

    async def _reset(self) -> None:
        for writer in self._writers:
            _close_with_reset(writer)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward bytes both ways until both sides have ended, or one was reset."""
        is_lost = self._is_lost
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            _close_with_reset(writer)
            return
        both = {writer, server_writer}
        self._writers |= both
        up = asyncio.create_task(self._carry(reader, server_writer, is_lost))
        down = asyncio.create_task(self._carry(server_reader, writer, is_lost, is_answer=True))
        _, pending = await asyncio.wait({up, down}, return_when=asyncio.FIRST_EXCEPTION)
        for task in pending:
            task.cancel()
        await asyncio.gather(up, down, return_exceptions=True)
        self._writers -= both
        for each in both:
            _close_with_reset(each)

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        is_lost: asyncio.Event,
        *,
        is_answer: bool = False,
    ) -> None:
        num_bytes = 0
        while chunk := await reader.read(_CHUNK_BYTES):
            if is_lost.is_set():
                continue
            fault = self.fault if is_answer else Fault()
            if fault.cut_after_bytes is not None:
                chunk = chunk[: fault.cut_after_bytes - num_bytes]
            num_bytes += len(chunk)
            await _write(writer, chunk, fault.bytes_per_second)
            if num_bytes == fault.cut_after_bytes:
                raise ConnectionResetError
        if not is_lost.is_set() and writer.can_write_eof():
            writer.write_eof()


async def _write(writer: asyncio.StreamWriter, chunk: bytes, bytes_per_second: float) -> None:
    step = max(int(bytes_per_second / 100), 1) if bytes_per_second else max(len(chunk), 1)
    for start in range(0, len(chunk), step):
        writer.write(chunk[start : start + step])
        await writer.drain()
        if bytes_per_second:
            await asyncio.sleep(step / bytes_per_second)


def _close_with_reset(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    if connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
