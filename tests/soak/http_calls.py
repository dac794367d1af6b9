"""Calls of our own API over HTTP: texts, streams of server-sent events, and documents."""

import asyncio
import json
from typing import Any

from tests.http_caller import events
from tests.http_post import JSON, begun, form_of

TRANSLATE, STREAM, FILES = "/v1/translate", "/v1/translate/stream", "/v1/files"
PATHS = (TRANSLATE, STREAM, FILES)
_NAME, _CONTENT = "name", "content"  # of a document
_LATE_SECONDS = 30.0  # after the deadline


def request_of(**fields: Any) -> bytes:
    """Return a request with these fields, those of /v1/translate; of a document `name` and `content`, too."""
    return json.dumps(fields).encode()


async def ask(url: str, path: str, request: bytes, timeout_seconds: float, fresh: float) -> tuple[str, str, Any]:
    """Return status, version and content of the answer; a length penalty `fresh`, unless it is 0, avoids the cache.

    Raises:
        TimeoutError: there was none, long after the deadline.
    """
    body, content_type = _body(path, request, timeout_seconds, fresh)
    async with asyncio.timeout(timeout_seconds + _LATE_SECONDS), begun(url, path, body, content_type) as call:
        status, _ = await call.head()
        answer = await call.rest()
    if status != 200:
        return str(json.loads(answer)["error"]["code"]), "", None
    if path == FILES:
        return "OK", "", answer.decode()
    if path == STREAM:
        return _streamed(answer)
    document = json.loads(answer)
    return "OK", document.pop("model_version"), document


async def abandon(url: str, request: bytes, timeout_seconds: float) -> None:
    """Read the first part of a stream, and no more."""
    body, content_type = _body(STREAM, request, timeout_seconds, 0.0)
    async with asyncio.timeout(timeout_seconds + _LATE_SECONDS), begun(url, STREAM, body, content_type) as call:
        await call.head()
        await call.part()


def _body(path: str, request: bytes, timeout_seconds: float, fresh: float) -> tuple[bytes, str]:
    fields = json.loads(request)
    fields["deadline"] = 1000.0 * timeout_seconds
    if fresh:
        fields["options"] = {**fields.get("options", {}), "length_penalty": fresh}
    if path == FILES:
        return form_of(fields.pop(_NAME), fields.pop(_CONTENT), fields)
    return json.dumps(fields).encode(), JSON


def _streamed(answer: bytes) -> tuple[str, str, Any]:
    """Return a stream's outcome: what was added to each text, and its translation."""
    deltas: dict[int, str] = {}
    whole: dict[int, Any] = {}
    for name, document in events(answer):
        if name == "error":
            return str(document["error"]["code"]), "", None
        if name == "done":
            said = [[deltas[index], whole.get(index)] for index in sorted(deltas)]
            return "OK", document["model_version"], said
        index = document["text_index"]
        deltas[index] = deltas.get(index, "") + document["delta"]
        if "translation" in document:
            whole[index] = document["translation"]
    return "INCOMPLETE", "", None
