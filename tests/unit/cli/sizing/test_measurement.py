"""The whole measurement against a server whose capacity and latency are known: a queue with one place (M/D/1).

It answers over real gRPC, when a queue with a fixed time of service would: it takes no CPU, so a busy machine hardly
changes it.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import grpc.aio
import pytest

from service.cli.sizing.callers import Sample
from service.cli.sizing.measured_server import MeasuredServer, Reading
from service.cli.sizing.measurement import Measurement, measure
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.process import event_loop
from tests.unit.cli.sizing.simulated_queue import SimulatedQueue

SERVICE_SECONDS = 0.005
CAPACITY = 1 / SERVICE_SECONDS
SAMPLE = Sample(["one", "two", "three"], "queue", "en", "de", 1.0)


@dataclass(slots=True)
class Queue:
    """Tells when each call is done, and how long it was busy."""

    free_at: float = 0.0
    busy_seconds: float = 0.0
    texts: set[str] = field(default_factory=set)

    def done_at(self, now: float) -> float:
        self.free_at = max(self.free_at, now) + SERVICE_SECONDS
        self.busy_seconds += SERVICE_SECONDS
        return self.free_at


class QueueServer(MeasuredServer):
    """`MeasuredServer` of that queue: one batch, one slot, no other processes."""

    __slots__ = ("queue",)
    queue: Queue

    def read(self) -> Reading:
        queue = self.queue
        used = queue.busy_seconds
        one = {"queue": 1.0}
        return Reading(time.perf_counter(), used, used, {"queue": used}, one, one, one, 1e8)


def measured(objective: float, seconds: float) -> tuple[Measurement, Queue]:
    queue = Queue()

    async def translate(request: Any, _: Any) -> Any:
        queue.texts.update(request.texts)
        await asyncio.sleep(queue.done_at(time.perf_counter()) - time.perf_counter())
        return pb.TranslateResponse(translations=[pb.Translation(text="x", hypotheses=[pb.Hypothesis(text="x")])])

    async def run() -> Measurement:
        server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(
            translate, pb.TranslateRequest.FromString, pb.TranslateResponse.SerializeToString
        )
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("dragoman.v1.TranslationService", {"Translate": handler}),)
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        known = QueueServer(f"127.0.0.1:{port}", "", frozenset(), 0.0)
        object.__setattr__(known, "queue", queue)
        try:
            return await measure(known, SAMPLE, objective, seconds, say=print)
        finally:
            await server.stop(None)

    return event_loop.run(run()), queue


@pytest.mark.full
@pytest.mark.parametrize("objective", [0.2, 1.0])
def test_the_rate_that_is_found_is_the_true_one(objective: float) -> None:
    found, queue = measured(objective, 40.0)
    true = SimulatedQueue(SERVICE_SECONDS).true_rate(objective)
    assert 0 < found.pod_rate <= 1.2 * true
    assert found.capacity <= 1.1 * CAPACITY
    assert queue.texts == set(SAMPLE.texts)
    if max(point.late_seconds for point in found.points) < objective / 10:  # not on a machine as busy as that
        assert found.pod_rate == pytest.approx(true, rel=0.2)
        assert found.load == pytest.approx(found.pod_rate / CAPACITY, rel=0.15)
