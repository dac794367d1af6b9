"""HTTP requests to a worker, over the Unix sockets on which it listens for its front only.

asyncio's streams and h11: a request that waits for a worker costs a task, not a thread as with `http.client`, and is
given up by cancelling it. A client library would be heavier than the rest of the front.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType

import h11

from service.calls.open_calls import PIECE_BYTES
from service.faces.http.application import HttpAnswer

# Headers of one connection, those that this end writes itself, and `Origin`, which has been checked: for the worker,
# every request comes from its own machine.
_OF_CONNECTION = frozenset(
    {"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
_NOT_PASSED_ON = _OF_CONNECTION | {"expect", "host", "origin"}
_NOT_PASSED_BACK = _OF_CONNECTION | {"content-type", "date", "server"}


@dataclass(frozen=True, slots=True)
class WorkerEndpoint:
    """A worker's number and its sockets: for scrapers and probes, and for operators, if the server has that port."""

    number: int
    metrics: Path
    admin: Path | None = None


class NoAnswer(Exception):
    """A worker did not answer. The message says why, after "it"; `was_sent` if it may have begun, `is_late` if it may
    still do it."""

    def __init__(self, message: str, *, was_sent: bool, is_late: bool = False) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        self.is_late = is_late


async def get(socket: Path, path: str, timeout_seconds: float) -> HttpAnswer:
    """Return the answer to a GET.

    Raises:
        NoAnswer: there is none in time.
    """
    return await ask(socket, "GET", path, timeout_seconds)


async def ask(
    socket: Path,
    method: str,
    path: str,
    timeout_seconds: float,
    headers: Mapping[str, str] = MappingProxyType({}),
    body: bytes = b"",
) -> HttpAnswer:
    """Return the answer to a request; `path` is as sent, names of `headers` are in lower case, as in the answer's.

    Raises:
        NoAnswer: there is none in time.
    """
    was_sent = False
    try:
        async with asyncio.timeout(timeout_seconds):
            reader, writer = await asyncio.open_unix_connection(socket)
            was_sent = True
            try:
                return await _exchange(reader, writer, _request(method, path, headers, body), body)
            finally:
                writer.transport.abort()  # nothing is left to send, or nobody to wait for the answer
    except TimeoutError as error:
        raise NoAnswer(f"did not answer within {timeout_seconds:g} s", was_sent=was_sent, is_late=True) from error
    except (OSError, h11.RemoteProtocolError) as error:
        reason = "ended before it answered" if was_sent else "is not running"
        raise NoAnswer(reason, was_sent=was_sent) from error


def _request(method: str, path: str, headers: Mapping[str, str], body: bytes) -> h11.Request:
    own = [("Host", "localhost"), ("Connection", "close"), ("Content-Length", str(len(body)))]
    passed = [item for item in headers.items() if item[0] not in _NOT_PASSED_ON]
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in own + passed]
    return h11.Request(method=method, target=path, headers=lines)


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: h11.Request, body: bytes
) -> HttpAnswer:
    connection = h11.Connection(h11.CLIENT)
    for part in (request, h11.Data(data=body), h11.EndOfMessage()):
        writer.write(connection.send(part) or b"")
    await writer.drain()
    status, headers, answered = HTTPStatus.OK, dict[str, str](), bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(PIECE_BYTES))
        elif isinstance(event, h11.Response):
            status = HTTPStatus(event.status_code)
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        elif isinstance(event, h11.Data):
            answered += event.data
        elif isinstance(event, h11.EndOfMessage):
            passed = {name: value for name, value in headers.items() if name not in _NOT_PASSED_BACK}
            return HttpAnswer(status, headers.get("content-type", ""), bytes(answered), passed)
