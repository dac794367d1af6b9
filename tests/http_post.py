"""Requests over HTTP from coroutines, which may give them up at any moment: on connections of their own."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

JSON = "application/json"
_BOUNDARY = "b-o-u-n-d-a-r-y"


class Begun:
    """A request that has been sent, and its answer as it comes."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._left: int | None = None  # bytes of the body; `None` if it comes in chunks

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """Return the status and the headers, once; their names are in lower case."""
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("transfer-encoding") != "chunked":
            self._left = int(headers["content-length"])
        return int(first.split()[1]), headers

    async def part(self) -> bytes:
        """Return the next part of the body, after the head; empty at its end."""
        if self._left is not None:
            size, self._left = self._left, 0
            return await self._reader.readexactly(size)
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        return (await self._reader.readexactly(size + 2))[:-2]

    async def rest(self) -> bytes:
        """Return the body from here on.

        Raises:
            IncompleteReadError: the connection ended before.
        """
        parts = []
        while part := await self.part():
            parts.append(part)
        return b"".join(parts)


@asynccontextmanager
async def begun(url: str, path: str, body: bytes, content_type: str = JSON) -> AsyncIterator[Begun]:
    """Send a request; at the end of the `with` block its connection is closed, whatever has come by then."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        yield Begun(reader)
    finally:
        writer.close()


def form_of(name: str, content: str | bytes, fields: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return a form with a file and other fields, and its content type."""
    data = content if isinstance(content, bytes) else content.encode()
    parts = [f'name="file"; filename="{name}"\r\n\r\n'.encode() + data]
    for field, value in fields.items():
        parts.append(f'name="{field}"\r\n\r\n{value if isinstance(value, str) else json.dumps(value)}'.encode())
    begin = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; ".encode()
    written = b"".join(begin + part + b"\r\n" for part in parts)
    return written + f"--{_BOUNDARY}--\r\n".encode(), f"multipart/form-data; boundary={_BOUNDARY}"
