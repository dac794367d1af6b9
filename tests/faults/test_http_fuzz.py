"""Requests of any shape to every route: an answer that says what is wrong, never a fault, and nobody else waits."""

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from service.config.server_config import ServerConfig
from service.documents import ENDINGS
from service.faces.http.routes import Route
from tests.http_caller import call
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, InProcessServer, LoopThread, in_process

ASKED = {"text": "station", "source_language_code": "en", "target_language_code": "de"}
WORDS: tuple[Any, ...] = (
    *(
        "station",
        "en",
        "de",
        "EN-US",
        "auto",
        "xx",
        "",
        "text/html",
        "html",
        "xml",
        "<b>x</b>",
        "tiny",
        "1",
        "\0",
        "é" * 50,
    ),
    *(0, 1, -1, 9, 1.5, 1e308, 2**70, True, False, None, [], {}, [[]], ["station"], {"a": "b"}),
)
FIELDS = (
    *("text", "texts", "q", "source", "target", "format", "alternatives", "api_key", "source_lang", "target_lang"),
    *("source_language_code", "target_language_code", "options", "terms", "labels", "deadline", "mime_type", "key"),
    *("contents", "mimeType", "sourceLanguageCode", "targetLanguageCode", "content", "parent", "model", "inputs"),
    *(
        "outputs",
        "parameters",
        "id",
        "tag_handling",
        "ignore_tags",
        "glossary_id",
        "split_sentences",
        "name",
        "entries",
    ),
    *("dictionaries", "entries_format", "beam_size", "priority", "return_alignments", "strict", "glossary"),
)
TYPES = (
    *(
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
    ),
    *("text/plain", "application/octet-stream", "", "application/json; charset=utf-16", "*/*"),
)
NAMES = (*(f"a{ending}" for ending in ENDINGS), "a.exe", "", "../a.md", "ü.txt", 'a\\"b.md', "x" * 300 + ".md")
MARKUP = (
    *("station", "\n", "\n\n", "# ", "*", "> ", "- ", "`", "[a](b)", "<b>", "</b>", "<p>", "<!--", "&amp;", "\t", ","),
    *('"', "msgid ", "msgstr ", '"station"', "1\n00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n\n", "<xliff ", "|", "\0"),
    *('version="1.2">', "<file>", "<source>", "</source>", "<trans-unit>", "PK\3\4", "---\n", "\ufeff", "é"),
)
ROUTE_FIELDS = {
    "/v1/files": {"target_language_code"},
    "/v2/document": {"target_lang"},
    "/translate_file": {"source", "target"},
}
PARTS = ("tiny", "en-de", "1", "p", "global", "x" * 300, "%00", "%2e%2e%2f", "%ff", "ü".encode().hex(), "-1", "nothing")


@pytest.fixture(scope="module")
def server(
    loop_thread: LoopThread, tiny_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InProcessServer]:
    folder = tmp_path_factory.mktemp("glossaries")
    config = ServerConfig(models=tiny_models, num_threads=1, http_port=0, glossaries=folder, caller_glossaries=True)
    with in_process(loop_thread, config) as running:
        yield running


def any_value(source: random.Random, depth: int = 0) -> Any:
    kind = source.random()
    if depth < 4 and kind < 0.15:
        return {source.choice(FIELDS): any_value(source, depth + 1) for _ in range(source.randint(0, 4))}
    if depth < 4 and kind < 0.3:
        return [any_value(source, depth + 1) for _ in range(source.randint(0, 4))]
    return source.choice(WORDS)


def any_body(source: random.Random) -> bytes:
    kind = source.random()
    fields = {source.choice(FIELDS): any_value(source) for _ in range(source.randint(0, 8))}
    if kind < 0.5:
        body = json.dumps(fields).encode()
    elif kind < 0.7:
        body = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
    elif kind < 0.8:
        body = b"".join(
            b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), str(value).encode())
            for name, value in fields.items()
        )
        body += b"--x--\r\n"
    else:
        body = source.randbytes(source.randint(0, 200))
    if source.random() < 0.2 and body:
        damaged = bytearray(body)
        damaged[source.randrange(len(damaged))] = source.randrange(256)
        body = bytes(damaged)
    return body


def any_document(source: random.Random) -> bytes:
    kind = source.random()
    if kind < 0.3:
        return source.randbytes(source.randint(0, 200))
    return "".join(source.choice(MARKUP) for _ in range(source.randint(0, 40))).encode("utf-8", "replace")


def any_path(source: random.Random, route: Route) -> str:
    path = route.path
    while "{" in path:
        begin, end = path.index("{"), path.index("}")
        path = path[:begin] + source.choice(PARTS) + path[end + 1 :]
    if source.random() < 0.3:
        path += f"?{source.choice(FIELDS)}={source.choice(('station', 'en', '%ff', '%00', '1', ''))}"
    return path


@pytest.mark.parametrize("number", [1_500, pytest.param(20_000, marks=[pytest.mark.full, pytest.mark.timeout(900)])])
def test_every_request_gets_an_answer_that_is_no_fault(server: InProcessServer, number: int) -> None:
    source = random.Random(19)
    routes = [route for route in server.server.calls.routes.all if route.path != "/"]  # type: ignore[union-attr]
    seconds: list[float] = []
    done = threading.Event()

    def someone_else() -> None:
        while not done.is_set():
            began = time.monotonic()
            assert call(server.http_url, "POST", "/v1/translate", ASKED).status == 200
            seconds.append(time.monotonic() - began)

    other = threading.Thread(target=someone_else)
    other.start()
    statuses: dict[int, int] = {}
    try:
        with closing(
            http.client.HTTPConnection(server.http_url.removeprefix("http://"), timeout=TIMEOUT_SECONDS)
        ) as kept:
            for _ in range(number):
                route = source.choice(routes)
                method = (
                    route.method if source.random() < 0.9 else source.choice(("GET", "POST", "PUT", "DELETE", "PATCH"))
                )
                path, body, kind = any_path(source, route), any_body(source), source.choice(TYPES)
                if "unload" in path or "load" in path.rpartition("/")[2]:
                    continue
                kept.request(method, path, body, {"Content-Type": kind, "X-Request-Id": "a b"})
                response = kept.getresponse()
                answer = response.read()
                statuses[response.status] = statuses.get(response.status, 0) + 1
                assert response.status < 500 or response.status in (501, 504), (method, path, kind, body, answer)
    finally:
        done.set()
        other.join(TIMEOUT_SECONDS)
    assert {200, 400, 404} <= statuses.keys(), statuses
    assert len(seconds) > 10
    assert sorted(seconds)[int(0.99 * (len(seconds) - 1))] < patient(1.0)


def fetched(server: InProcessServer, document: Any) -> int:
    """Return the status of what an upload's answer leads to."""
    if address := document.get("translatedFileUrl"):
        return call(server.http_url, "GET", urlsplit(address).path).status
    path, key = f"/v2/document/{document['document_id']}", {"document_key": document["document_key"]}
    assert call(server.http_url, "POST", path, key).document["status"] in ("done", "error")
    return call(server.http_url, "POST", f"{path}/result", key).status


@pytest.mark.parametrize("number", [60, pytest.param(2_000, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_every_upload_gets_an_answer_that_is_no_fault(server: InProcessServer, number: int) -> None:
    source = random.Random(19)
    routes = [route for route in server.server.calls.routes.all if route.max_body_bytes]  # type: ignore[union-attr]
    assert len(routes) == 3
    fields = {"target_language_code": "de", "target_lang": "DE", "source": "en", "target": "de"}
    statuses: Counter[int] = Counter()
    for _ in range(number):
        route, name, document = source.choice(routes), source.choice(NAMES), any_document(source)
        given = [each for each in fields.items() if source.random() < 0.95 and each[0] in ROUTE_FIELDS[route.path]]
        parts = [f'--x\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in given]
        head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = "".join([*parts, head]).encode() + document + b"\r\n--x--\r\n"
        reply = call(server.http_url, "POST", route.path, body=body, content_type="multipart/form-data; boundary=x")
        statuses[reply.status] += 1
        assert reply.status in (200, 400), (route.path, name, document, reply.body)
        if reply.status == 200 and route.path != "/v1/files":
            assert fetched(server, reply.document) in (200, 400), (route.path, name, document)
    assert {200, 400} <= statuses.keys(), statuses
    assert call(server.http_url, "POST", "/v1/translate", ASKED).status == 200
