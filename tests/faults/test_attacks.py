"""Calls that cost the server far more than the sender, beside a caller of small texts."""

import itertools
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from tests.faults.bystanders import HEALTHY_SECONDS, Peak, SmallCaller, cpu_seconds
from tests.grpc_calls import request_of
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess

METHOD = "/dragoman.v1.TranslationService/Translate"
DETECT = "/dragoman.v1.TranslationService/DetectLanguage"
MIB = 2**20
MOST = 4 * MIB  # characters: more than a server accepts by default
ALLOWED = 128 * 2**10  # characters: the default limit
MEMORY_MIB = 256  # the most that a server may take for this
LARGE_SERVER = ("--max-characters", str(MOST), "--max-request-bytes", str(MOST + MIB))
WIDE_TERM = pb.Term(source="1", target="\U0001f600" * 200)


@dataclass(frozen=True)
class Attack:
    """Messages sent at the same time, as described in the issue that reported them, and the expected answers."""

    text: str
    size: int  # bytes or characters of its text at the full size
    code: grpc.StatusCode
    num_calls: int = 1
    deadline_seconds: float = 60.0
    options: Mapping[str, Any] = ()  # type: ignore[assignment]

    def message(self, size: int) -> bytes:
        text = self.text * (size // len(self.text.encode()))
        return translation(text, **dict(self.options))


REFUSED, LATE, OK = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.OK
ATTACKS = {
    "an opened placeholder, four times": Attack("{%", MOST - 2, OK, num_calls=4),
    "white space": Attack(" ", MOST - 2, OK),
    "paragraphs that nobody waits for": Attack(
        "<p>a", 3 * MIB, LATE, num_calls=2, deadline_seconds=patient(1.0), options={"mime_type": "text/html"}
    ),
    "an answer larger than memory": Attack("1 ", 1_200_000, REFUSED, options={"terms": [WIDE_TERM]}),
    "lines": Attack("a\n", MOST - 2, REFUSED),
    "ligatures that are 18 characters each": Attack("\ufdfa", 3 * 1_398_000, REFUSED),
    "repetitions in a caller's own pattern": Attack(
        "a", ALLOWED, REFUSED, num_calls=4, options={"placeholders": [pb.Placeholder(pattern=r"(?:\w{0,30}){30}!|\w")]}
    ),
    "placeholders and nothing else, aligned": Attack("{}", MOST - 2, REFUSED, options={"return_alignments": True}),
}


def translation(*texts: str, **options: Any) -> bytes:
    return request_of(texts, **options).SerializeToString()


def answer(address: str, message: bytes, deadline_seconds: float, method: str = METHOD) -> tuple[grpc.StatusCode, int]:
    """Make a call on a new connection; return its status and the size of its answer."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(address, options=options) as channel:
        try:
            call: Any = channel.unary_unary(method, None, None)
            return OK, len(call(message, timeout=deadline_seconds))
        except grpc.RpcError as error:
            return error.code(), 0


class Attacker:
    """Sends messages from its own threads."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._pool = ThreadPoolExecutor(32)

    def send(self, attack: Attack, size: int) -> list["Future[tuple[grpc.StatusCode, int]]"]:
        message = attack.message(size)
        send = (self._address, message, attack.deadline_seconds)
        return [self._pool.submit(answer, *send) for _ in range(attack.num_calls)]

    def close(self) -> None:
        self._pool.shutdown(wait=True)


@pytest.fixture(scope="module")
def large_server(tiny_models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tiny_models, "--grace-seconds", "5", *LARGE_SERVER) as server:
        yield server


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_answered_and_costs_little(large_server: ServerProcess, name: str) -> None:
    """At a thirtieth of its size, on a server that accepts it. Before the fix, some took minutes, or gigabytes."""
    attack, server = ATTACKS[name], large_server
    assert answer(server.address, translation("Hello"), 30.0)[0] is OK
    peak, cpu = Peak(server), cpu_seconds(server)
    attacker = Attacker(server.address)
    outcomes = [each.result(timeout=patient(100)) for each in attacker.send(attack, attack.size // 30)]
    attacker.close()
    assert {code for code, _ in outcomes} <= {attack.code, REFUSED, OK}
    assert answer(server.address, translation("Hello"), HEALTHY_SECONDS)[0] is OK
    grown = peak.grown()
    assert grown < 150
    used = cpu_seconds(server) - cpu
    assert used < 20


def test_nothing_is_computed_for_a_call_that_is_over(large_server: ServerProcess) -> None:
    """Before the fix, two such calls occupied both planning threads for a minute."""
    attack = ATTACKS["paragraphs that nobody waits for"]
    attacker = Attacker(large_server.address)
    before = cpu_seconds(large_server)
    outcomes = [each.result(timeout=patient(60)) for each in attacker.send(attack, attack.size)]
    assert {code for code, _ in outcomes} == {LATE}
    after = cpu_seconds(large_server)
    assert after - before > 0.2  # otherwise this test proves nothing
    end = time.monotonic() + 3.0
    while time.monotonic() < end and cpu_seconds(large_server) - after < 0.5:
        time.sleep(0.05)
    left = cpu_seconds(large_server) - after
    assert left < 0.5
    attacker.close()


def test_short_work_does_not_wait_for_planning(tiny_models: Path) -> None:
    """Texts planned off the event loop: 5,000 characters, small HTML, a detection."""
    with ServerProcess(tiny_models, "--grace-seconds", "1", *LARGE_SERVER) as server:
        attacker = Attacker(server.address)
        attack = Attack("<p>a", 3 * MIB, LATE, num_calls=12, deadline_seconds=45.0, options={"mime_type": "text/html"})
        sent = attacker.send(attack, attack.size)
        small = {
            "text": (translation("help me now " * 417, split_sentences=pb.SPLIT_SENTENCES_OFF), METHOD),
            "html": (translation("<p>help <b>me</b> now" * 4, mime_type="text/html"), METHOD),
            "detection": (pb.DetectLanguageRequest(texts=["Where is the station?"]).SerializeToString(), DETECT),
        }
        for message, method in small.values():
            assert answer(server.address, message, HEALTHY_SECONDS, method)[0] is OK
        assert not any(each.done() for each in sent)  # otherwise this test proves nothing
        server.signal(signal.SIGTERM)
        code, _, _ = server.wait(patient(30.0))
        assert code == 0
        attacker.close()


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("arguments", "most"), [((), MOST), ((), ALLOWED), (LARGE_SERVER, MOST)], ids=["refused", "allowed", "large"]
)
def test_two_attacks_at_a_time_beside_a_small_caller(arguments: tuple[str, ...], most: int) -> None:
    """Each pair runs on the shipped model, in three ways.

    At full size on the default server, which rejects it; at the largest size that server accepts; and at full size on a
    server configured to accept it.
    """
    num_calls = 0
    with ServerProcess(REPOSITORY / "models", "--grace-seconds", "5", *arguments) as server:
        attacker = Attacker(server.address)
        assert answer(server.address, translation("Hello"), 30.0)[0] is OK
        with SmallCaller(server.address) as caller:
            peak = Peak(server)
            for pair in itertools.combinations_with_replacement(ATTACKS.values(), 2):
                sent = [each for attack in pair for each in attacker.send(attack, min(attack.size, most))]
                codes = {each.result(timeout=patient(120))[0] for each in sent}
                assert codes <= {OK, REFUSED, LATE, grpc.StatusCode.RESOURCE_EXHAUSTED}
                num_calls += len(sent)
            grown = peak.grown()
            caller.stop()
        attacker.close()
    p99_ms, worst_ms = 1000 * caller.p99_seconds(), 1000 * caller.seconds[-1]
    print(f"{num_calls} calls beside {len(caller.seconds)} small ones: p99 {p99_ms:.0f} ms, worst {worst_ms:.0f} ms, ")
    print(f"memory {grown:.0f} MiB more")
    assert p99_ms < 200
    assert grown < (MEMORY_MIB if not arguments else 4 * MEMORY_MIB)
