"""Calls to the port of operators."""

import json
from collections.abc import Mapping
from typing import Any

from tests.http_caller import call

JSON = {"Content-Type": "application/json"}
HELLO = {"texts": ["Hello"], "source_language_code": "en", "target_language_code": "de"}
# Headers by which a browser tells of a page of another site.
FOREIGN: tuple[dict[str, str], ...] = (
    {"Content-Type": "text/plain"},
    {**JSON, "Origin": "http://evil.example"},
    {**JSON, "Origin": "null"},
    {**JSON, "Host": "evil.example"},
    {**JSON, "Host": "evil.example", "Origin": "http://evil.example"},
)


def ask(
    port: int, method: str, path: str, body: Any = None, headers: Mapping[str, str] = JSON, raw: bytes = b""
) -> tuple[int, Any, Mapping[str, str]]:
    """Return the status, the document or the bytes, and the headers by their names in lower case."""
    content = raw or (None if body is None else json.dumps(body).encode())
    reply = call(f"http://127.0.0.1:{port}", method, path, body=content, **headers)
    is_json = reply.headers["content-type"] == JSON["Content-Type"]
    return reply.status, reply.document if is_json else reply.body, reply.headers
