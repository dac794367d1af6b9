"""What 64 KiB from a client without a key cost the event loop, whatever they are."""

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.bystanders import Peak
from tests.faults.test_http_attacks import serving
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, ServerProcess

PIECE = 64 * 2**10
MOST_MS = 1.5  # of the loop's CPU time, with connecting and reading


def filled(begin: bytes, again: bytes, end: bytes = b"", size: int = PIECE - 8) -> bytes:
    """Return `begin`, then as many of `again` as there is room for, and `end`."""
    return begin + again * ((size - len(begin) - len(end)) // len(again)) + end


def head(target: bytes, *lines: bytes, method: bytes = b"POST") -> bytes:
    return b"\r\n".join((method + b" " + target + b" HTTP/1.1", b"Host: a", b"Connection: close", *lines)) + b"\r\n"


def get(begin: bytes, again: bytes, end: bytes = b"") -> bytes:
    """Return a request whose target fills 64 KiB."""
    rest = b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    return filled(b"GET " + begin, again, end, PIECE - 8 - len(rest)) + rest


def headers(begin: bytes, again: bytes, end: bytes = b"", target: bytes = b"/v1/models") -> bytes:
    """Return a request whose headers fill 64 KiB."""
    return filled(head(target, method=b"GET") + begin, again, end + b"\r\n\r\n")


def body(target: bytes, kind: bytes, begin: bytes, again: bytes, end: bytes = b"", *lines: bytes) -> bytes:
    """Return a request with a body of this type that fills 64 KiB."""
    content = filled(begin, again, end, PIECE - 400)
    return head(target, b"Content-Type: " + kind, b"Content-Length: %d" % len(content), *lines) + b"\r\n" + content


def chunks(
    again: bytes, end: bytes = b"0\r\n\r\n", target: bytes = b"/v2/translate", kind: bytes = b"text/plain"
) -> bytes:
    """Return a request whose body in chunks fills 64 KiB."""
    begin = head(target, b"Content-Type: " + kind, b"Transfer-Encoding: chunked") + b"\r\n"
    return filled(begin, again, end)


FORM, JSON, MULTIPART = b"application/x-www-form-urlencoded", b"application/json", b"multipart/form-data; boundary=b"
PART = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n'

SHAPES: Mapping[str, bytes] = {
    "nothing": head(b"/", method=b"GET") + b"\r\n",
    # paths and queries
    "path of percents": get(b"/", b"%"),
    "path of encoded bytes": get(b"/", b"%41"),
    "path of a glossary": get(b"/v2/glossaries/", b"%41"),
    "path of two open parts": get(b"/v1/models/", b"%41", b"/x"),
    "path with colons": get(b"/v3/projects/", b"%3a", b":translateText"),
    "path of slashes": get(b"/", b"/"),
    "path of segments": get(b"/", b"a/"),
    "path of dots": get(b"/v2/models/", b"../"),
    "absolute form": get(b"http://", b"a"),
    "absolute form with percents": get(b"http://a/", b"%"),
    "query of fields": get(b"/v2/usage?", b"a&"),
    "query of encoded fields": get(b"/language/translate/v2?", b"%41=%41&"),
    "query of keys": get(b"/language/translate/v2?", b"key=&"),
    "query of plus": get(b"/language/translate/v2?q=", b"+"),
    "query of percents": get(b"/v2/usage?auth_key=", b"%"),
    "query of ampersands": get(b"/v2/usage?auth_key", b"&"),
    # headers
    "many headers": headers(b"", b"a:\r\n"),
    "many headers with values": headers(b"", b"X-Word: b\r\n"),
    "one long header": headers(b"X-Word: ", b"a"),
    "header of spaces": headers(b"X-Word: ", b" \t"),
    "many cookies": headers(b"Cookie: ", b"a=b; "),
    "headers of cookies": headers(b"", b"Cookie: a=b\r\n"),
    "many authorizations": headers(b"", b"Authorization: Bearer a\r\n"),
    "long authorization": headers(b"Authorization: Bearer ", b"a"),
    "long key": headers(b"X-Api-Key: ", b"\xff"),
    "languages": headers(b"Accept-Language: ", b"de;q=0.1,"),
    "long origin": headers(b"Origin: http://", b"a.", b"\r\nAccess-Control-Request-Method: GET"),
    "long host": filled(b"GET / HTTP/1.1\r\nConnection: close\r\nHost: ", b"a.", b"\r\n\r\n"),
    "empty lines before": filled(b"", b"\r\n", head(b"/", method=b"GET") + b"\r\n"),
    "long type": headers(
        b"Content-Length: 0\r\nContent-Type: multipart/form-data; ", b'a="b"; ', target=b"/v2/document"
    ),
    # bodies in chunks
    "chunks of a byte": chunks(b"1\r\na\r\n"),
    "chunks of two bytes": chunks(b"2\r\n&=\r\n", kind=FORM),
    "chunks with extensions": chunks(b"1;a\r\na\r\n"),
    "chunks for nobody": chunks(b"1\r\na\r\n", target=b"/health"),
    "chunks with zeros": chunks(b"000000000000001\r\na\r\n"),
    "chunks in a form": chunks(b"1\r\na\r\n", target=b"/v2/document", kind=MULTIPART),
    "trailers": chunks(b"a:\r\n", b"\r\n\r\n").replace(b"\r\n\r\na:", b"\r\n\r\n0\r\na:", 1),
    # forms
    "form of encoded keys": body(b"/translate", FORM, b"", b"api_key=%41%41&"),
    "form of encoded names": body(b"/translate", FORM, b"api_key", b"%41=%41&"),
    "form of fields": body(b"/v2/translate", FORM, b"auth_key", b"a&"),
    "form of ampersands": body(b"/v2/translate", FORM, b"auth_key", b"&"),
    "form of plus": body(b"/v2/translate", FORM, b"auth_key", b"+"),
    "form of percents": body(b"/v2/translate", FORM, b"auth_key=", b"%"),
    "form of texts": body(b"/v2/translate", FORM, b"auth_key&", b"text[0]=a&"),
    "form of Google's": body(b"/language/translate/v2", FORM, b"", b"%71=%41&"),
    "form of lines": body(b"/v2/translate", FORM, b"auth_key&text=", b"\r\n"),
    # forms in parts
    "parts": body(b"/v2/translate", MULTIPART, b"", PART % b"a" + b"1\r\n", b"--b--\r\n"),
    "parts with keys": body(b"/v2/translate", MULTIPART, b"", PART % b"auth_key" + b"\r\n", b"--b--\r\n"),
    "parts of names": body(b"/v2/document", MULTIPART, b"", b" name=auth_key\r\nContent-a: "),
    "parts of empty lines": body(b"/v2/document", MULTIPART, b"", b' name="auth_key"\r\n\r\n'),
    "parts of LibreTranslate's": body(b"/translate", MULTIPART, b"", PART % b"q" + b"\r\n", b"--b--\r\n"),
    "parts with parameters": body(
        b"/v2/document",
        MULTIPART,
        b"",
        b"--b\r\nContent-Disposition: form-data; name=a" + b';a="b"' * 140 + b"\r\n\r\n\r\n",
    ),
    "parts with headers": body(b"/v2/document", MULTIPART, b"", PART[:-2] % b"a" + b"a:b\r\n" * 160 + b"\r\n\r\n"),
    "a part of lines": body(b"/v2/document", MULTIPART, PART % b"file", b"\r\n", b"--b--\r\n"),
    "a part of boundaries": body(b"/v2/document", MULTIPART, PART % b"file", b"\r\n--", b"\r\n--b--\r\n"),
    "before the first part": body(b"/v2/document", MULTIPART, b"", b"\r\n--c"),
    # JSON
    "deep lists": body(b"/translate", JSON, b'{"api_key":', b"["),
    "deep objects": body(b"/v2/translate", JSON, b'{"auth_key":', b'{"":'),
    "names of nothing": body(b"/v2/translate", JSON, b'{"auth_key":1', b',"":0', b"}"),
    "distinct names": body(
        b"/translate", JSON, b'{"api_key":1,' + b",".join(b'"%d":0' % n for n in range(7000)), b" ", b"}"
    ),
    "keys in JSON": body(b"/translate", JSON, b'{"api_key":1', b',"api_key":1', b"}"),
    "numbers": body(b"/translate", JSON, b'{"api_key":[1', b",1", b"]}"),
    "escapes": body(b"/translate", JSON, b'{"api_key":"', b"\\u0041", b'"}'),
    "half surrogates": body(b"/v2/translate", JSON, b'{"auth_key":"', b"\\ud800", b'"}'),
    "quotes": body(b"/translate", JSON, b'{"api_key":"', b'\\"', b'"}'),
    "wrong UTF-8": body(b"/translate", JSON, b'{"api_key":"', b"\xff", b'"}'),
    "digits": body(b"/translate", JSON, b'{"api_key":', b"9", b"}"),
    "lists in a list": body(b"/v2/translate", JSON, b'{"auth_key":[[]', b",[]", b"]}"),
    "JSON called a form": body(b"/v2/translate", FORM, b'{"auth_key":1', b',"a":[]', b"}"),
    # as many as there may be
    "most of a path": get(b"/v2/glossaries/" + b"%" * 16_000 + b" HTTP/1.1\r\nX-Word: ", b"a", b"\r\nX-Word:"),
    "most fields of a query": get(b"/v2/usage?", b"auth_keys=" + b"a" * 48 + b"&"),
    "most fields of a form": body(b"/v2/translate", FORM, b"", b"auth_key" + b"%41" * 16 + b"=a&"),
    "most headers": headers(b"", b"X-Word: " + b"a" * 660 + b"\r\n"),
    "most chunks": chunks(b"294\r\n" + b"a" * 660 + b"\r\n"),
    # what answers without a key
    "JSON for anybody": body(b"/frontend/settings", JSON, b"[0", b",0", b"]"),
    "nowhere": body(b"/nowhere", JSON, b"[0", b",0", b"]"),
    "a preflight": headers(b"Origin: a\r\nAccess-Control-Request-Method: a\r\nAccess-Control-Request-Headers: ", b"a,"),
    "pipelined": filled(b"", b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"),
}


# Which are answered otherwise than that there is no key: by their names' first word, or by their whole names.
STATUSES: Mapping[str, int] = {
    "nothing": 200,
    "empty lines before": 200,
    "path": 414,
    "absolute": 414,
    "query": 400,
    "query of plus": 401,
    "query of percents": 403,
    "many": 431,
    "many cookies": 401,
    "headers": 431,
    "long host": 400,
    "long type": 405,
    "chunks": 400,
    "chunks for nobody": 405,
    "trailers": 400,
    "parts with keys": 400,
    "parts of names": 400,
    "parts of empty lines": 400,
    "form": 400,
    "form of plus": 403,
    "form of percents": 403,
    "form of lines": 403,
    "JSON for anybody": 405,
    "nowhere": 404,
    "pipelined": 0,
}
NO_KEY = (401, 403)


def sent(server: ServerProcess, content: bytes) -> bytes:
    """Return the answer."""
    answer = b""
    with socket.create_connection(("127.0.0.1", server.http_port), TIMEOUT_SECONDS) as connection:
        with suppress(ConnectionError):  # refused before all was taken
            connection.sendall(content)
        with suppress(ConnectionError):
            while more := connection.recv(65_536):
                answer += more
    return answer


def loop_seconds(server: ServerProcess) -> float:
    """Return the CPU time that the thread of the event loop has taken."""
    pid = server.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def cost_ms(server: ServerProcess, content: bytes, times: int) -> float:
    """Return the least that a request took of the event loop, until its connection had ended."""
    found = []
    for _ in range(times):
        began = loop_seconds(server)
        sent(server, content)
        time.sleep(0.002)
        found.append(loop_seconds(server) - began)
    return 1000 * min(found)


@pytest.fixture(scope="module")
def server(tiny_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tiny_models, tmp_path_factory.mktemp("keys")) as running:
        yield running


def test_each_is_answered(server: ServerProcess) -> None:
    for name, content in SHAPES.items():
        assert name == "nothing" or len(content) > PIECE - 1024, name
        answer = sent(server, content)
        status = int(answer.split(b" ")[1]) if answer else 0
        expected = STATUSES.get(name, STATUSES.get(name.split()[0]))
        assert status in NO_KEY if expected is None else status == expected, (name, answer[:500])


@pytest.mark.parametrize(
    ("times", "most_ms"),
    [(2, patient(10.0)), pytest.param(30, MOST_MS, marks=[pytest.mark.full, pytest.mark.timeout(600)])],
)
def test_none_costs_much(server: ServerProcess, times: int, most_ms: float) -> None:
    """A form of many encoded keys took 62 ms, a path of `%` 24, chunks of one byte 15 to 30, 13,000 headers 6."""
    for content in SHAPES.values():  # what runs for the first time
        sent(server, content)
    peak = Peak(server)
    costs = {name: cost_ms(server, content, times) for name, content in SHAPES.items()}
    print("\n".join(f"{cost:6.2f} ms {name}" for name, cost in sorted(costs.items(), key=lambda each: -each[1])))
    assert {name: cost for name, cost in costs.items() if cost > most_ms} == {}
    assert peak.grown() < 4
