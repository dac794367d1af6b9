"""Far more calls than a server can handle: some are answered, the others rejected immediately, and nothing piles up.

`benchmarks/overload.py` measures the speed; here the numbers must be consistent, on any machine.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import request_of, retry_seconds
from tests.patience import patient
from tests.servers import InProcessServer, LoopThread, Serve, distinct_texts, eventually

NUM_CALLS = 200
QUEUE_SECONDS = 0.1
HINT_SECONDS = (0.1, 60.0)


@dataclass
class Storm:
    """The outcomes of calls that all arrived at once."""

    codes: Counter[str] = field(default_factory=Counter)
    answers: dict[str, str] = field(default_factory=dict)
    hints: list[float] = field(default_factory=list)
    most_waiting: int = 0
    longest_wait_seconds: float = 0.0


async def storm(server: InProcessServer, texts: list[str]) -> Storm:
    seen, engine = Storm(), server.server.models[0].engine

    async def call(stub: Any, text: str) -> None:
        request = request_of([text])
        try:
            response = await stub.Translate(request, timeout=patient(60))
            seen.answers[text] = response.translations[0].text
            seen.codes["OK"] += 1
        except grpc.aio.AioRpcError as error:
            seen.codes[error.code().name] += 1
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                seen.hints.append(retry_seconds(error))
        snapshot = engine.snapshot()
        seen.most_waiting = max(seen.most_waiting, snapshot.num_waiting)
        seen.longest_wait_seconds = max(seen.longest_wait_seconds, snapshot.wait_seconds)

    async with grpc.aio.insecure_channel(server.address) as channel:
        stub: Any = pb_grpc.TranslationServiceStub(channel)
        await asyncio.gather(*(call(stub, text) for text in texts))
    return seen


def started(serve: Serve, **settings: object) -> InProcessServer:
    """Start a server and let it learn its pace."""
    server = serve(max_slots=2, num_threads=2, **settings)
    with server.client() as client:
        client.translate(distinct_texts(30), "en", "de")
    return server


def test_a_storm_is_answered_in_part_and_refused_for_the_rest(serve: Serve, loop_thread: LoopThread) -> None:
    server = started(serve, max_queue_seconds=QUEUE_SECONDS)
    texts = distinct_texts(NUM_CALLS)
    seen = loop_thread.run(storm(server, texts), timeout_seconds=patient(90))
    assert set(seen.codes) == {"OK", "RESOURCE_EXHAUSTED"}
    assert sum(seen.codes.values()) == NUM_CALLS
    assert all(HINT_SECONDS[0] <= hint <= HINT_SECONDS[1] for hint in seen.hints)
    assert seen.most_waiting < NUM_CALLS // 2
    engine = server.server.models[0].engine
    eventually(lambda: engine.snapshot().slots_used == engine.snapshot().num_waiting == 0)
    assert server.metric("dragoman_rejected_total", reason="queue_full") == seen.codes["RESOURCE_EXHAUSTED"]
    with server.client() as client:  # once there is room no call is rejected, and accepted calls got the right answers
        again = [client.translate([text], "en", "de")[0].text for text in list(seen.answers)[:20]]
    assert again == list(seen.answers.values())[:20]


def test_a_server_without_limits_lets_everybody_wait(
    serve: Serve, loop_thread: LoopThread, plain_tiny_models: Path
) -> None:
    """The positive control: this load does overload the server. With fused graphs it may well keep up."""
    server = started(serve, max_queue_seconds=86_400.0, models=plain_tiny_models)
    engine = server.server.models[0].engine
    under_way = asyncio.run_coroutine_threadsafe(storm(server, distinct_texts(NUM_CALLS)), loop_thread.loop)
    try:
        eventually(lambda: engine.snapshot().num_waiting > NUM_CALLS // 2)
        assert server.metric("dragoman_rejected_total", reason="queue_full") == 0
    finally:
        under_way.cancel()
