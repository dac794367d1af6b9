"""Calls over HTTP for tests, by the standard library and by bare sockets."""

import http.client
import json
import socket
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.patience import patient

_TIMEOUT_SECONDS = patient(30.0)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        return self.document["error"]


def call(url: str, method: str, path: str, document: Any = None, body: bytes | None = None, **headers: str) -> Reply:
    """Send one request; underscores in names of headers are hyphens."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if document is not None:
        body = json.dumps(document).encode()
        given.setdefault("content-type", "application/json")
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT_SECONDS)) as connection:
        connection.request(method, path, body, given)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, found, response.read())


def raw(url: str, *parts: bytes, first_only: bool = False) -> bytes:
    """Send bytes and return all that comes until the server closes the connection, or what comes first."""
    address = urlsplit(url)
    assert address.hostname is not None
    with socket.create_connection((address.hostname, address.port or 80), _TIMEOUT_SECONDS) as connection:
        for part in parts:
            connection.sendall(part)
        answer = b""
        while more := connection.recv(65_536):
            answer += more
            if first_only:
                break
        return answer


def events(body: bytes) -> list[tuple[str, Any]]:
    """Return the name and the data of each server-sent event."""
    found = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line)
        if fields:
            found.append((fields.get("event", ""), json.loads(fields["data"])))
    return found
