"""A small hub of models on loopback: the calls that its client makes to list and to download files."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

Answer = tuple[int, dict[str, str], bytes]  # status, headers, body
SHA = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """`models` are files by name, of models by name; `gated` ones may be listed and not read."""

    url: str = ""
    models: dict[str, Mapping[str, bytes]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    served: list[str] = field(default_factory=list)  # names of files, as they were read

    def answer(self, method: str, path: str) -> Answer:
        parts = unquote(urlsplit(path).path).strip("/").split("/")
        is_call = parts[:2] == ["api", "models"]
        owner, name, *rest = parts[2:] if is_call else parts
        files = self.models.get(f"{owner}/{name}")
        if files is None:
            return 401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b"{}"
        revision = rest[1] if len(rest) > 1 else "main"
        if revision not in ("main", "v1.0", SHA):
            return 404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}, b"{}"
        if not is_call:
            return self._file(method, f"{owner}/{name}", "/".join(rest[2:]), files)
        if rest[:1] == ["tree"]:
            entries = [
                {"type": "file", "path": each, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for each, data in files.items()
            ]
            return 200, {}, json.dumps(entries).encode()
        siblings = [{"rfilename": each, "size": len(data), "blobId": "0"} for each, data in files.items()]
        return 200, {}, json.dumps({"id": f"{owner}/{name}", "sha": SHA, "siblings": siblings}).encode()

    def _file(
        self, method: str, model: str, name: str, files: Mapping[str, bytes]
    ) -> tuple[int, dict[str, str], bytes]:
        if model in self.gated:
            return 403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}, b""
        data = files[name]
        if method == "GET":
            self.served.append(name)
        tag = hashlib.sha1(data).hexdigest()
        return 200, {"ETag": f'"{tag}"', "X-Repo-Commit": SHA, "Accept-Ranges": "bytes"}, data


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    hub = FakeHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _reply(self) -> None:
            code, headers, body = hub.answer(self.command, self.path)
            self.send_response(code)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = _reply  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
