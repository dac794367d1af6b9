"""A registry on loopback that serves one OCI layout, and fails as a test asks it to."""

import base64
import contextlib
import json
import re
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.servers import TIMEOUT_SECONDS

_PATH = re.compile(r"/v2/team/models/(manifests|blobs)/(.+)")


@dataclass
class Faults:
    """What the registry does to a request, besides answering it."""

    ranges: bool = True  # whether it knows them
    failures: int = 0  # how many of the next requests are answered with `status`
    status: int = 503
    cuts: list[int] = field(default_factory=list)  # bytes of a blob after which a connection ends, one for each request
    stall: int | None = None  # bytes after which a blob stops; `go_on` lets it continue
    go_on: threading.Event = field(default_factory=threading.Event)
    replaced: dict[str, bytes] = field(default_factory=dict)  # what is sent for a digest or tag
    password: str = ""  # of the user "reader"; anybody may read without
    takes_basic: bool = False  # instead of a token for that password
    token: str = "a-token"
    is_public: bool = False  # whether anybody gets a token, as public repositories of many registries give it
    realm: str = ""  # where it says that tokens are; by default here
    blobs_at: str = ""  # the address of a registry that callers are sent to for blobs


@dataclass
class Got:
    """A request for a blob or manifest."""

    name: str
    start: int
    authorization: str


class ModelRegistry:
    """Where the registry is, what it does wrong, and what it was asked for."""

    def __init__(self, layout: Path, address: str) -> None:
        self.layout = layout
        self.address = address
        self.faults = Faults()
        self.requests: list[Got] = []

    @property
    def url(self) -> str:
        return f"oci://{self.address}/team/models"

    def starts(self, digest: str) -> list[int]:
        """Return the first byte of each request for a blob."""
        return [got.start for got in self.requests if got.name == digest]

    def content(self, name: str) -> bytes | None:
        """Return what a digest or a tag names."""
        if name in self.faults.replaced:
            return self.faults.replaced[name]
        if not name.startswith("sha256:"):
            for each in json.loads((self.layout / "index.json").read_text())["manifests"]:
                if each.get("annotations", {}).get("org.opencontainers.image.ref.name") == name:
                    name = each["digest"]
        path = self.layout / "blobs" / name.replace(":", "/")
        return path.read_bytes() if path.is_file() else None


@contextlib.contextmanager
def model_registry(layout: Path, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> Iterator[ModelRegistry]:
    """Serve a layout until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, registry)

        def log_message(self, *_arguments: Any) -> None:
            pass

    with ThreadingHTTPServer((host, 0), Handler) as server:
        registry = ModelRegistry(layout, f"{host}:{server.server_port}")
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield registry
        finally:
            registry.faults.go_on.set()
            server.shutdown()
            thread.join(TIMEOUT_SECONDS)


def _answer(request: BaseHTTPRequestHandler, registry: ModelRegistry) -> None:
    faults = registry.faults
    authorization = request.headers.get("Authorization", "")
    basic = "Basic " + base64.b64encode(f"reader:{faults.password}".encode()).decode()
    if request.path.startswith("/token?"):
        is_known = faults.is_public or authorization == basic
        _send(request, 200 if is_known else 401, json.dumps({"token": faults.token}).encode() if is_known else b"")
        return
    found = _PATH.fullmatch(request.path)
    assert found, request.path
    name = found[2]
    first = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
    start = int(first[1]) if first else 0
    if faults.password and authorization != (basic if faults.takes_basic else f"Bearer {faults.token}"):
        realm = faults.realm or f"http://{registry.address}/token"
        bearer = f'Bearer realm="{realm}",service="test",scope="repository:team/models:pull"'
        _send(request, 401, b"", {"WWW-Authenticate": 'Basic realm="test"' if faults.takes_basic else bearer})
        return
    registry.requests.append(Got(name, start, authorization))
    if faults.failures:
        faults.failures -= 1
        _send(request, faults.status, b"")
        return
    if faults.blobs_at and found[1] == "blobs":
        _send(request, 307, b"", {"Location": f"http://{faults.blobs_at}{request.path}"})
        return
    content = registry.content(name)
    if content is None:
        _send(request, 404, b"")
        return
    is_range = first is not None and faults.ranges
    data = content[start:] if is_range else content
    _send(request, 206 if is_range else 200, data, cut=_cut(faults, found[1]), faults=faults)


def _cut(faults: Faults, kind: str) -> int | None:
    return faults.cuts.pop(0) if kind == "blobs" and faults.cuts else None


def _send(
    request: BaseHTTPRequestHandler,
    status: int,
    data: bytes,
    headers: dict[str, str] | None = None,
    cut: int | None = None,
    faults: Faults | None = None,
) -> None:
    request.send_response(status)
    for name, value in (headers or {}).items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    with contextlib.suppress(ConnectionError):  # its caller may be killed
        stall = faults.stall if faults is not None else None
        if cut is not None or stall is None or len(data) <= stall:
            request.wfile.write(data[:cut])
            return
        request.wfile.write(data[:stall])
        request.wfile.flush()
        assert faults is not None
        faults.go_on.wait(TIMEOUT_SECONDS)
        request.wfile.write(data[stall:])
