"""Where one request ends and the next begins, on every port: one message, one answer, whoever reads it otherwise.

What two readers could understand differently is refused, and its connection closed (RFC 9112 2.2, 6.3, 11.2).
"""

import itertools
import socket
from contextlib import suppress

import pytest

from service.faces.http.heads import MAX_PATH_BYTES
from tests.servers import TIMEOUT_SECONDS, Serve

LAST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"  # after every message, on its connection
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"  # a body that would be a request
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def sized(body: bytes, more: bytes = b"") -> bytes:
    return POST + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def in_chunks(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return POST + CHUNKED + b"\r\n" + b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks) + end


ANSWERED = {
    "get": GET + b"\r\n",
    "body": sized(HIDDEN),
    "body of nothing": sized(b""),
    "length with zeros": POST + b"Content-Length: 0003\r\n\r\nabc",
    "length with spaces": POST + b"Content-Length: \t 3 \t\r\n\r\nabc",
    "chunks": in_chunks(HIDDEN, b"x" * 300),
    "chunks in capitals": POST + b"transfer-encoding: CHUNKED\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
    "chunks with extensions": POST + CHUNKED + b'\r\n3;a=b;c="d"\r\nabc\r\n0\r\n\r\n',
    "chunks with trailers": in_chunks(HIDDEN, end=b"0\r\nX-Sum: 1\r\nContent-Length: 9\r\n\r\n"),
    "upgrade to h2c": GET + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n\r\n",
    "upgrade with a body": sized(HIDDEN, b"Connection: Upgrade\r\nUpgrade: h2c\r\n"),
    "upgrade with chunks": POST
    + b"Connection: upgrade\r\nUpgrade: websocket\r\n"
    + CHUNKED
    + b"\r\n1\r\nx\r\n0\r\n\r\n",
    "upgrade to tls": GET + b"Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n",
    "unknown expectation": sized(b"abc", b"Expect: 200-ok\r\n"),
    "empty lines before": b"\r\n\r\n" + GET + b"\r\n",
    "absolute form": b"GET http://b/health?q=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "asterisk form": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "fragment": b"GET /health#x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "empty host": b"GET /health HTTP/1.1\r\nHost:\r\n\r\n",
    "path of the most bytes": b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"%" * (MAX_PATH_BYTES - 1)),
    "header of latin-1": GET + b"X-Word: \xe4\r\n\r\n",
    "empty header": GET + b"X-Word:\r\n\r\n",
}
REFUSED = {
    "two lengths": POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "two equal lengths": POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "list of lengths": POST + b"Content-Length: 3, 3\r\n\r\nabc",
    "length and chunks": POST + b"Content-Length: 3\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks and length": POST + CHUNKED + b"Content-Length: 3\r\n\r\n0\r\n\r\n",
    "signed length": POST + b"Content-Length: +3\r\n\r\nabc",
    "negative length": POST + b"Content-Length: -3\r\n\r\nabc",
    "length in hexadecimals": POST + b"Content-Length: 0x3\r\n\r\nabc",
    "no length": POST + b"Content-Length:\r\n\r\n",
    "length that overflows": POST + b"Content-Length: 18446744073709551617\r\n\r\na",
    "chunks twice": POST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n",
    "other coding": POST + b"Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
    "list of codings": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked, identity": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "gzip, then chunked": POST + b"Transfer-Encoding: gzip\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "gzip, then chunked far behind": POST + b"Transfer-Encoding: gzip\r\nX-Word: a\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "identity, then chunked": POST + b"transfer-encoding: identity\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "nothing, then chunked": POST + b"Transfer-Encoding:\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunked with a parameter": POST + b"Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n",
    "almost chunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked with a control": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "space before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "chunks in 1.0": b"POST /v1/translate HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "folded header": GET + b"X-Word: a\r\n b\r\n\r\n",
    "folded coding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "header without a colon": GET + b"X-Word\r\n\r\n",
    "header without a name": GET + b": a\r\n\r\n",
    "space in a name": GET + b"X Word: a\r\n\r\n",
    "zero in a value": GET + b"X-Word: a\0b\r\n\r\n",
    "bare CR in a value": GET + b"X-Word: a\rTransfer-Encoding: chunked\r\n\r\n",
    "bare LF in a value": GET + b"X-Word: a\nX-Other: b\r\n\r\n",
    "lines that end with LF": b"GET /health HTTP/1.1\nHost: a\n\n",
    "lines that end with CR": b"GET /health HTTP/1.1\rHost: a\r\r",
    "LF behind the head": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": GET + b"Host: localhost\r\n\r\n",
    "host with a path": b"GET /health HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "host with a user": b"GET /health HTTP/1.1\r\nHost: a@b\r\n\r\n",
    "0.9": b"GET /health\r\n\r\n",
    "0.9 without an end": b"GET /health\r\n",
    "1.2": b"GET /health HTTP/1.2\r\nHost: localhost\r\n\r\n",
    "2.0": b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "preface of 2.0": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "RTSP": b"GET /health RTSP/1.0\r\nHost: localhost\r\n\r\n",
    "RTSP's own method": b"DESCRIBE /health RTSP/1.0\r\nHost: localhost\r\n\r\n",
    "ICE": b"SOURCE /health ICE/1.0\r\nHost: localhost\r\n\r\n",
    "1.10": b"GET /health HTTP/1.10\r\nHost: localhost\r\n\r\n",
    "HTTPS": b"GET /health HTTPS/1.1\r\nHost: localhost\r\n\r\n",
    "a longer path": b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"%" * MAX_PATH_BYTES),
    "small letters": b"GET /health http/1.1\r\nHost: localhost\r\n\r\n",
    "words behind the version": b"GET /health HTTP/1.1 x\r\nHost: localhost\r\n\r\n",
    "unknown method": b"FETCH /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "zero in the target": b"GET /hea\0lth HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "target of latin-1": b"GET /\xe4 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
    "chunk without a size": in_chunks(end=b"\r\n0\r\n\r\n"),
    "chunk of a negative size": in_chunks(end=b"-1\r\nx\r\n0\r\n\r\n"),
    "chunk with a prefix": in_chunks(end=b"0x1\r\nx\r\n0\r\n\r\n"),
    "chunk with a space before": in_chunks(end=b" 1\r\nx\r\n0\r\n\r\n"),
    "chunk with a space behind": in_chunks(end=b"1 \r\nx\r\n0\r\n\r\n"),
    "chunk that overflows": in_chunks(end=b"10000000000000001\r\nx\r\n0\r\n\r\n"),
    "chunk that is longer": in_chunks(end=b"1\r\nxy\r\n0\r\n\r\n"),
    "chunk lines that end with LF": in_chunks(end=b"1\nx\n0\n\n"),
    "extension with a bare CR": in_chunks(end=b"1;a\rb\r\nx\r\n0\r\n\r\n"),
    "extension without an end": in_chunks(end=b"1;" + b"a" * 300),
    "trailer that is a request": in_chunks(end=b"0\r\n" + HIDDEN),
    "trailers that end with LF": in_chunks(end=b"0\r\nX-Sum: 1\n\r\n"),
    "trailers without an end": in_chunks(end=b"0\r\n" + b"X-Sum: 1\r\n" * 1000),
    "CONNECT": b"CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.fixture(scope="module")
def ports(share: Serve) -> dict[str, int]:
    """Return the ports that speak HTTP, by name."""
    server = share(http_port=0, admin_port=0).server
    return {"http": server.http_port, "metrics": server.metrics_port, "admin": server.admin_port}


def received(port: int, *parts: bytes) -> bytes:
    """Send parts; return what comes until the server closes the connection, perhaps while more is sent."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as connection, suppress(ConnectionError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connection.sendall(part)
        while more := connection.recv(65_536):
            answer += more
    return answer


def answers(port: int, sent: bytes) -> list[int]:
    """Return the status of each answer until the server closes the connection."""
    left, statuses = received(port, sent), []
    while left:
        head, _, rest = left.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 "), left
        status = int(head.split(b" ")[1])
        length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        left = rest[int(length or 0) :]
        if status != 100:
            statuses.append(status)
    return statuses


def test_a_message_has_one_answer(ports: dict[str, int]) -> None:
    for (name, sent), port in itertools.product(ANSWERED.items(), ports):
        found = answers(ports[port], sent + LAST)
        assert all(each < 500 or each == 501 for each in found), (name, port, found)
        # Operators' ports end the connection of a body that they don't take.
        may_end = port != "http" and not name.startswith("get")
        assert len(found) == 2 or (len(found) == 1 and may_end), (name, port, found)


def test_what_can_be_read_in_two_ways_is_refused(ports: dict[str, int]) -> None:
    for (name, sent), port in itertools.product(REFUSED.items(), ports):
        found = answers(ports[port], sent + LAST)
        assert len(found) == 1, (name, port, found)
        assert 400 <= found[0] < 500 or found[0] in (501, 505), (name, port, found)


def test_it_is_the_same_byte_by_byte(ports: dict[str, int]) -> None:
    """However the network cuts messages."""
    cases = [*itertools.product((*ANSWERED.values(), *REFUSED.values()), ports.values())]
    for sent, port in cases:
        whole = answers(port, sent + LAST)
        apart = received(port, *(bytes([byte]) for byte in sent + LAST))
        found = apart.count(b"HTTP/1.1 ") - apart.count(b"HTTP/1.1 100 ")
        assert found == len(whole) or not apart, sent  # a reset may discard what was sent


LOG = b'127.0.0.1 - - "GET /a HTTP/1.1" 200 3\r\n' * 100  # a text that quotes HTTP
HEADS = (GET + b"\r\n") * 100


@pytest.mark.parametrize("text", [LOG, HEADS, LOG.replace(b"\r\n", b"\n\n"), HEADS + in_chunks(HEADS)], ids=range(4))
def test_what_a_body_contains_is_not_counted_as_requests(ports: dict[str, int], text: bytes) -> None:
    """However it arrives, and in a request that waits for its turn."""
    for sent, behind in itertools.product((sized(text), in_chunks(text), GET + b"\r\n" + sized(text)), (b"", GET)):
        num_others = sent.startswith(b"GET") + bool(behind)
        for at in (0, 100, len(sent) // 2):
            answer = received(ports["http"], sent[:at], sent[at:] + (behind and behind + b"\r\n") + LAST)
            assert answer.count(b"HTTP/1.1 ") == num_others + 2, at


def test_pipelined_requests_are_answered_in_order_and_not_too_many(ports: dict[str, int]) -> None:
    for tiny in (GET + b"\r\n", sized(b"GET / HTTP/1.1\r\n\r\n"), in_chunks(b"a"), in_chunks(b"a") + GET + b"\r\n"):
        few, many = answers(ports["http"], tiny * 5 + LAST), answers(ports["http"], tiny * 200)
        assert len(few) == 5 * tiny.count(b"HTTP/1.1\r\nHost: localhost") + 1
        assert few[-1] == 200
        assert len(many) < 100
