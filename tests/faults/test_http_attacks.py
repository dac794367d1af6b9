"""Attacks on the HTTP port by clients without a key, beside a caller of small texts with one."""

import itertools
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.faults.bystanders import Peak, SmallCaller
from tests.http_caller import call
from tests.http_post import form_of
from tests.key_files import BOB as KEY
from tests.key_files import write_keys
from tests.patience import patient
from tests.servers import REPOSITORY, TIMEOUT_SECONDS, Serve, ServerProcess, distinct_texts, eventually

MIB = 2**20
PIECE = 64 * 2**10
HOST = b"Host: a\r\n"
FORM = b"Content-Type: multipart/form-data; boundary=b\r\n"
ASKED = {"text": "station", "source_language_code": "en", "target_language_code": "de"}


class Attacker:
    """Holds the connections of one attack."""

    def __init__(self, port: int, stack: ExitStack) -> None:
        self._port = port
        self._stack = stack

    def connect(self) -> socket.socket:
        connection = self._stack.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # for answers that are not read
        connection.settimeout(TIMEOUT_SECONDS)
        connection.connect(("127.0.0.1", self._port))
        return connection

    def pour(self, connection: socket.socket, first: bytes, again: bytes, num_bytes: int, last: bytes = b"") -> None:
        """Send something, then something else again and again, as long as the server takes any of it."""
        connection.settimeout(patient(1.0))
        with suppress(OSError):  # it is closed, or nothing more is read
            connection.sendall(first)
            for _ in range(num_bytes // len(again)):
                connection.sendall(again)
            connection.sendall(last)

    def each_pours(self, num_connections: int, first: bytes, again: bytes, num_bytes: int) -> None:
        """Pour so many bytes in all into several connections at once."""
        connections = [self.connect() for _ in range(num_connections)]
        with ThreadPoolExecutor(num_connections) as pool:
            for each in connections:
                pool.submit(self.pour, each, first, again, num_bytes // num_connections)


Attack = Callable[[Attacker, float], None]


def pipelined(attacker: Attacker, scale: float) -> None:
    """A1: tiny requests without waiting for an answer."""
    tiny = b"GET /x HTTP/1.1\r\n" + HOST + b"\r\n"
    attacker.each_pours(max(int(100 * scale), 4), b"", tiny * (PIECE // len(tiny)), int(38 * MIB * scale))


def uploads(attacker: Attacker, scale: float) -> None:
    """A2: uploads that are begun and never ended."""
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    first = b"POST /v2/document HTTP/1.1\r\n" + HOST + FORM + b"Content-Length: 28000000\r\n\r\n" + part
    attacker.each_pours(6, first, b"x" * PIECE, int(160 * MIB * scale))


def heads(attacker: Attacker, scale: float) -> None:
    """B1: a head without an end, behind requests whose answers are not read."""
    first = (b"GET /v1/openapi.json HTTP/1.1\r\n" + HOST + b"\r\n") * 15 + b"GET /v1/models HTTP/1.1\r\nX-Endless: "
    attacker.each_pours(1, first, b"x" * PIECE, int(160 * MIB * scale))


def forms(attacker: Attacker, scale: float) -> None:
    """B2: parts of a form whose headers are long."""
    parameters = b"; ".join(b'a%d="b"' % number for number in range(800))
    part = b"--b\r\nContent-Disposition: form-data; name=a; " + parameters + b"\r\n\r\n1\r\n"
    num_bytes = int(30 * MIB * scale)
    attacker.pour(attacker.connect(), form_head(num_bytes // len(part) * len(part) + 5), part, num_bytes, b"--b--")


def many_fields(attacker: Attacker, scale: float) -> None:
    """B2: as many parts as a form may have, from somebody who has a key."""
    body = b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n" * 4000 + b"--b--"
    about = form_head(len(body), b"X-Api-Key: " + KEY.encode() + b"\r\n")
    attacker.pour(attacker.connect(), b"", about + body, int(20 * scale + 1) * len(about + body))


def form_head(num_bytes: int, more: bytes = b"") -> bytes:
    head = b"POST /translate_file HTTP/1.1\r\n" + HOST + FORM + more
    return head + b"Content-Length: %d\r\n\r\n" % num_bytes


ATTACKS = {each.__name__: each for each in (pipelined, uploads, heads, forms, many_fields)}


@contextmanager
def serving(models: Path, folder: Path, *arguments: str) -> Iterator[ServerProcess]:
    keys = str(write_keys(folder, bob=KEY))
    with ServerProcess(models, "--api-keys", keys, "--grace-seconds", "5", *arguments, has_http=True) as process:
        yield process


def attack(server: ServerProcess, attacks: Sequence[Attack], scale: float, seconds: float = 0.0) -> float:
    """Attack again and again for so long; return the memory taken in MiB when a call has been answered meanwhile."""

    def repeat(attack: Attack) -> None:
        end = time.monotonic() + seconds
        is_over = False
        while not is_over:
            with ExitStack() as stack:
                attack(Attacker(server.http_port, stack), scale)
                is_over = time.monotonic() >= end
                if is_over:
                    all_over.wait(patient(300))  # connections stay open until then

    all_over = threading.Barrier(len(attacks) + 1)
    with ThreadPoolExecutor(len(attacks)) as pool:
        peak = Peak(server)
        sent = [pool.submit(repeat, each) for each in attacks]
        all_over.wait(patient(300))
        for each in sent:
            each.result(patient(60))
        assert call(server.http_url, "POST", "/v1/translate", ASKED, x_api_key=KEY).status == 200
        return peak.grown()


@pytest.fixture(scope="module")
def server(tiny_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tiny_models, tmp_path_factory.mktemp("keys"), "--max-characters", str(32 * MIB)) as running:
        yield running


def test_an_attack_costs_little(server: ServerProcess) -> None:
    with SmallCaller(server.address, KEY) as caller:
        grown = {name: attack(server, [each], scale=0.1) for name, each in ATTACKS.items()}
        caller.stop()
    assert {name: mib for name, mib in grown.items() if mib >= 16} == {}


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("pair", [*itertools.combinations_with_replacement(ATTACKS, 2)], ids="-".join)
def test_two_attacks_at_full_size(tmp_path: Path, pair: tuple[str, str]) -> None:
    with serving(REPOSITORY / "models", tmp_path) as server, SmallCaller(server.address, KEY) as caller:
        grown = attack(server, [ATTACKS[name] for name in pair], scale=1.0, seconds=5.0)
        caller.stop()
    p99_ms, worst_ms = 1000 * caller.p99_seconds(), 1000 * caller.seconds[-1]
    print(f"{pair}: {len(caller.seconds)} small calls, p99 {p99_ms:.0f} ms, worst {worst_ms:.0f}, {grown:.0f} MiB more")
    assert p99_ms < 100
    assert worst_ms < 200
    assert grown < 64


def test_what_nobody_ends_leaves_room_for_others(server: ServerProcess) -> None:
    """A2: a good key holds a share; a client without a key holds nothing of the server's budget."""
    with ExitStack() as stack:
        attacker = Attacker(server.http_port, stack)
        first = b"POST /v1/translate HTTP/1.1\r\n" + HOST + b"X-Api-Key: %s\r\nContent-Length: 1000000\r\n\r\n"
        for key in (KEY.encode(), b"wrong"):
            for _ in range(100):
                attacker.pour(attacker.connect(), first % key, b"x" * 1000, 60_000)
        reply = call(server.http_url, "POST", "/v1/translate", ASKED, x_api_key=KEY)
        assert reply.status == 200, reply.body


def test_six_large_uploads_at_once_are_not_all_refused(server: ServerProcess) -> None:
    """C3: each was refused for the part of it that the others had taken."""
    body, kind = form_of("a.txt", b"Where is the station?\n" * (20 * MIB // 22), {"target_lang": "DE"})

    def status(_: int) -> bytes:
        head = f"POST /v2/document HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\nX-Api-Key: {KEY}\r\n"
        head += f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.http_port), TIMEOUT_SECONDS) as connection:
            with suppress(ConnectionError):  # it was refused before the end
                connection.sendall(head.encode() + body)
            with suppress(ConnectionError):
                return connection.recv(1024).split(b" ")[1]
            return b""

    with ThreadPoolExecutor(6) as pool:
        statuses = set(pool.map(status, range(6)))
    assert b"200" in statuses, statuses
    assert statuses <= {b"200", b"429", b""}


def test_who_never_shakes_hands_is_counted(serve: Serve, tmp_path: Path) -> None:
    """B5: connections of TLS that send nothing make room for others, and end by themselves."""
    authority = Authority()
    certificate, key = authority.pair().write(tmp_path)
    port = serve(http_port=0, tls_certificate=certificate, tls_key=key, max_connections=8).server.http_port
    trust = ssl.create_default_context(cadata=authority.certificate.decode())
    with ExitStack() as stack:
        attacker = Attacker(port, stack)
        silent = [attacker.connect() for _ in range(64)]
        for _ in range(8):
            plain = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
            with closing(plain), closing(trust.wrap_socket(plain, server_hostname="localhost")) as secure:
                secure.sendall(b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n")
                assert secure.recv(1024).startswith(b"HTTP/1.1 200 ")

        def is_closed(connection: socket.socket) -> bool:
            connection.settimeout(patient(0.05))
            try:
                return connection.recv(1) == b""
            except ConnectionError:
                return True
            except TimeoutError:
                return False

        eventually(lambda: sum(map(is_closed, silent)) >= 56)


def test_resets_leave_no_line_and_a_stop_tells_half_sent_uploads_in_the_words_of_their_api(
    tiny_models: Path, tmp_path: Path
) -> None:
    """D3: the path that the caller had sent was logged, with a traceback. D5: they were answered with a bare 500."""
    with serving(tiny_models, tmp_path) as server, ExitStack() as stack:
        reset_at_every_stage(server)
        assert call(server.http_url, "POST", "/v1/translate", ASKED, x_api_key=KEY).status == 200
        begun = []
        for path in (b"/v1/translate", b"/v2/translate", b"/language/translate/v2"):
            connection = Attacker(server.http_port, stack).connect()
            head = b"POST %s HTTP/1.1\r\n" % path + HOST + b"X-Api-Key: " + KEY.encode() + b"\r\n"
            connection.sendall(head + b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n")
            assert connection.recv(1024).startswith(b"HTTP/1.1 100 ")
            begun.append(connection)
        server.process.terminate()
        for connection in begun:
            answer = b"".join(iter(partial(connection.recv, 65_536), b""))
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 "), answer
            assert "the server is stopping" in json.dumps(json.loads(body))
        code, _, err = server.wait()
    assert code == 0
    assert "Traceback" not in err
    assert "/v1/translate" not in err


def reset_at_every_stage(server: ServerProcess) -> None:
    """Close connections with a reset: in the head, in the body, after it, and in the answer."""
    texts = json.dumps({**ASKED, "texts": distinct_texts(20), "text": None}).encode()
    about = HOST + b"X-Api-Key: " + KEY.encode() + b"\r\nContent-Type: application/json\r\n"
    begun = b"POST /v1/translate%s HTTP/1.1\r\n" + about + b"Content-Length: %d\r\n\r\n" % len(texts)
    stages = [
        (begun[:-3] % b"", False),
        (begun % b"" + texts[:-3], False),
        (begun % b"" + texts, False),
        (begun % b"" + texts, True),
        (begun % b"/stream" + texts, True),
    ]
    for (sent, waits_for_answer), number in itertools.product(stages, range(6)):
        with socket.create_connection(("127.0.0.1", server.http_port), TIMEOUT_SECONDS) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close with a reset
            connection.sendall(sent)
            if waits_for_answer:
                connection.recv(1)
            elif number % 2:
                time.sleep(0.01)  # so that some have begun
