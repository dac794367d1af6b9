"""Requests of any shape to every route: an answer that says what is wrong, never a fault, and nobody else waits."""

import http.client
import json
import logging
import random
import re
import time
from collections import Counter
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from service.faces.google.rules import UNSUPPORTED_RULES
from service.faces.http.routes import Route, Routes
from tests.api.http_faces import FACES
from tests.callers import Callers
from tests.http_caller import call
from tests.key_files import ALICE, write_keys
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, InProcessServer, Serve

ASKED = {"text": "station", "source_language_code": "en", "target_language_code": "de"}
WORDS: tuple[Any, ...] = (
    *("station", "en", "de", "EN-US", "auto", "xx", "", "text/html", "html", "xml", "<b>x</b>", "tiny", "1", "\0"),
    *("é" * 50, 0, 1, -1, 9, 1.5, 1e308, 2**70, True, False, None, [], {}, [[]], ["station"], {"a": "b"}),
)
FIELDS = (
    *("text", "texts", "q", "source", "target", "format", "alternatives", "api_key", "source_lang", "target_lang"),
    *("source_language_code", "target_language_code", "options", "terms", "labels", "deadline", "mime_type", "key"),
    *("contents", "mimeType", "sourceLanguageCode", "targetLanguageCode", "content", "parent", "model", "inputs"),
    *("outputs", "parameters", "id", "tag_handling", "ignore_tags", "glossary_id", "split_sentences", "name"),
    *("entries", "dictionaries", "entries_format", "beam_size", "priority", "return_alignments", "strict", "glossary"),
)
TYPES = (
    *("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", ""),
    *("multipart/form-data", "application/octet-stream", "application/json; charset=utf-16", "*/*"),
)
HEADERS = {
    "Inference-Header-Content-Length": ("0", "1", "-1", "9" * 5000, "²", "1e3", "", " 2 ", "0x10"),
    "Content-Encoding": ("gzip", "deflate", "br", "identity", "gzip, gzip", "x" * 300, "\xff", ""),
    "Origin": ("null", "*", "https://example.org", "http://[", "x" * 3000, "\xff", ""),
    "Access-Control-Request-Method": ("POST", "x" * 300, ""),
    "Authorization": ("Bearer", "Bearer ", "Bearer \xff", "DeepL-Auth-Key x", "Basic Zm9v", "x" * 3000, ""),
    "X-Api-Key": ("", "\xff", "dgm_", "x" * 3000),
    "X-Goog-Api-Key": ("", "\xff", "x" * 3000),
    "Traceparent": ("00", "00-x-y-z", f"00-{'0' * 32}-{'0' * 16}-00", f"ff-{'a' * 32}-{'b' * 16}-zz", "\xff" * 55),
    "X-Request-Id": ("", "x" * 128, "x" * 129, "\xff", "a\tb"),
    "Content-Type": ("\xff", 'multipart/form-data; boundary="', "application/json; charset=\xff", "x" * 3000),
    "Accept-Language": ("*", "\xff", "de;q=x"),
    "Host": ("", "\xff", "a:b:c", "x" * 300),
    "X-Forwarded-Proto": ("https", "\xff", "javascript"),
    "Expect": ("100-continue", "x"),
}
PARTS = ("tiny", "en-de", "1", "p", "global", "x" * 300, "%00", "%2e%2e%2f", "%ff", "ü".encode().hex(), "-1", "nothing")
# Requests that are right, of which one field is changed: a random one is rejected by the first of its checks.
RIGHT: dict[str, Any] = {
    **{face.path: face.asked("station") for face in FACES.values() if not re.search("/projects/|/models/", face.path)},
    "/v1/translate/stream": ASKED,
    "/v1/detect": {"texts": ["station"]},
    "/detect": {"q": "station"},
    "/language/translate/v2/detect": {"q": ["station"]},
    "/v3/projects/{part0}:translateText": FACES["google.v3"].asked("station"),
    "/v3/projects/{part0}:detectLanguage": {"content": "station"},
    "/v2/models/{name}/infer": FACES["kserve"].asked("station"),
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@pytest.fixture(scope="module")
def server(share: Serve, tmp_path_factory: pytest.TempPathFactory) -> InProcessServer:
    folder, keys = tmp_path_factory.mktemp("glossaries"), write_keys(tmp_path_factory.mktemp("keys"), fuzz=ALICE)
    return share(http_port=0, glossaries=folder, api_keys=keys)


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


def nearly_right(source: random.Random, right: Any) -> bytes:
    document = {**right}
    if source.random() < 0.7:
        document[source.choice((*right, *FIELDS))] = any_value(source)
    return json.dumps(document).encode()


def any_path(source: random.Random, route: Route) -> str:
    path = route.path
    while "{" in path:
        begin, end = path.index("{"), path.index("}")
        path = path[:begin] + source.choice(PARTS) + path[end + 1 :]
    if source.random() < 0.3:
        path += f"?{source.choice(FIELDS)}={source.choice(('station', 'en', '%ff', '%00', '1', ''))}"
    return path


def any_headers(source: random.Random) -> dict[str, str]:
    names = source.sample(sorted(HEADERS), source.choice((0, 0, 1, 1, 2, 4)))
    return {name: source.choice(HEADERS[name]) for name in names}


def routes_of(server: InProcessServer) -> Routes:
    routes = server.server.calls.routes
    assert routes is not None
    return routes


def may_be_refused(route: Route) -> bool:
    """Return whether the route is there to be refused: another server may support it."""
    triton = {f"http/kserve/{name}" for name in ("trace_setting", "log_settings", "shared_memory", "generate")}
    google = {f"http/google.v3/{rule.name}" for rule in UNSUPPORTED_RULES}
    return route.name in triton | google or route.path.startswith("/v2/repository/{repository}")


def fuzz(server: InProcessServer, number: int) -> Counter[int]:
    """Send so many requests, each of which must get an answer that is no fault, and return how often each status came.

    Raises:
        AssertionError: an answer is a fault.
    """
    source = random.Random(19)
    routes = routes_of(server)
    chosen = [route for route in routes.all if route.path != "/" and not route.name.endswith("load")]
    statuses: Counter[int] = Counter()
    address = urlsplit(server.http_url).netloc
    with closing(http.client.HTTPConnection(address, timeout=TIMEOUT_SECONDS)) as kept:
        for _ in range(number):
            route = source.choice(chosen)
            method = route.method if source.random() < 0.9 else source.choice(METHODS)
            path, body, kind = any_path(source, route), any_body(source), source.choice(TYPES)
            if route.path in RIGHT and source.random() < 0.7:
                body, kind = nearly_right(source, RIGHT[route.path]), "application/json"
            headers = {"Content-Type": kind, "X-Request-Id": "a b", "X-Api-Key": ALICE, **any_headers(source)}
            kept.request(method, path, body, headers)
            response = kept.getresponse()
            answer = response.read()
            statuses[response.status] += 1
            sent = f"{method} {path} {headers} {body!r}: {response.status} {answer!r}"  # pytest shortens a tuple
            if response.status == 501:
                found = routes.find(path.partition("?")[0])
                taken = found and found.by_method.get("GET" if method == "HEAD" else method)
                assert taken, sent
                assert may_be_refused(taken), sent
            else:
                assert response.status < 500 or response.status == 504, sent
            assert response.getheader("x-request-id"), sent
    return statuses


@pytest.mark.parametrize("number", [1_500, pytest.param(20_000, marks=[pytest.mark.full, pytest.mark.timeout(900)])])
def test_every_request_gets_an_answer_that_is_no_fault(
    server: InProcessServer, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    assert {route.path for route in routes_of(server).all} >= RIGHT.keys()
    seconds: list[float] = []

    def ask() -> None:
        began = time.monotonic()
        assert call(server.http_url, "POST", "/v1/translate", ASKED, x_api_key=ALICE).status == 200
        seconds.append(time.monotonic() - began)

    with Callers(ask) as someone_else:
        statuses = fuzz(server, number)
    assert not someone_else.failures
    assert {200, 400, 401, 404, 405, 415, 501} <= statuses.keys(), statuses
    assert len(seconds) > 10
    assert sorted(seconds)[int(0.99 * (len(seconds) - 1))] < patient(1.0)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_control_a_planted_fault_is_found(server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(server.server.translator, "detect", broken)
    with pytest.raises(AssertionError, match="internal error; see request"):
        fuzz(server, 1_500)
