"""Requests on one stream: in order, a limited number at a time, and ended as the server or the caller wishes."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.calls.open_calls import ByteBudget
from service.calls.pipeline import CallObserver, CallPipeline
from service.domain.call import Call, begin_call
from service.domain.errors import InvalidRequest, NotFound, Unavailable
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.kserve.infer_stream import MAX_IN_FLIGHT, InferStream
from service.observe.access_log import AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors

METHOD = "inference.GRPCInferenceService/ModelStreamInfer"


class Scene:
    """Requests that are answered when the test decides."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.asked: dict[str, asyncio.Future[None]] = {}
        self.written: list[pb.ModelStreamInferResponse] = []
        self.wrote = asyncio.Event()
        self.closing = asyncio.Event()
        self.cancelled: list[str] = []

    def start(self, requests: AsyncIterator[pb.ModelInferRequest]) -> asyncio.Task[None]:
        begin_call(Call(METHOD))
        observer = CallObserver(self.metrics, RecentErrors(), AccessLog(0.0, with_texts=False))
        pipeline = CallPipeline(self.metrics, observer, lambda _: None)
        stream = InferStream(self.infer, pipeline, ByteBudget(2**20, 1024).hold())
        return asyncio.create_task(stream.run(requests, self.write, self.closing))

    async def infer(self, request: pb.ModelInferRequest) -> pb.ModelInferResponse:
        self.asked[request.id] = asyncio.get_running_loop().create_future()
        try:
            await self.asked[request.id]
        except asyncio.CancelledError:
            self.cancelled.append(request.id)
            raise
        return pb.ModelInferResponse(id=request.id)

    async def write(self, response: pb.ModelStreamInferResponse) -> None:
        self.written.append(response)
        self.wrote.set()

    def ids(self) -> list[str]:
        return [response.infer_response.id for response in self.written]

    def count(self, code: str) -> float:
        labels = f'dragoman_requests_total{{code="{code}",kind="other",method="{METHOD}"}} '
        lines = self.metrics.render()[0].decode().splitlines()
        return next((float(line.removeprefix(labels)) for line in lines if line.startswith(labels)), 0.0)


async def requests_of(num_requests: int, then: BaseException | None = None) -> AsyncIterator[pb.ModelInferRequest]:
    for number in range(num_requests):
        yield pb.ModelInferRequest(id=str(number))
    if then is not None:
        raise then


async def silence() -> AsyncIterator[pb.ModelInferRequest]:
    for number in range(2):
        yield pb.ModelInferRequest(id=str(number))
    await asyncio.Event().wait()


async def until_idle() -> None:
    for _ in range(10 * MAX_IN_FLIGHT):
        await asyncio.sleep(0)


async def test_answers_come_in_the_order_of_requests_whatever_is_done_first() -> None:
    scene = Scene()
    run = scene.start(requests_of(4))
    await until_idle()
    for each in ("3", "1"):
        scene.asked[each].set_result(None)
    await until_idle()
    assert scene.ids() == []
    scene.asked["0"].set_result(None)
    await until_idle()
    assert scene.ids() == ["0", "1"]
    scene.asked["2"].set_result(None)
    await run
    assert scene.ids() == ["0", "1", "2", "3"]
    assert scene.count("OK") == 4


async def test_no_more_than_so_many_are_at_work_or_unwritten() -> None:
    scene = Scene()
    run = scene.start(requests_of(3 * MAX_IN_FLIGHT))
    await until_idle()
    assert len(scene.asked) == MAX_IN_FLIGHT
    for number in range(1, MAX_IN_FLIGHT):  # done, but not written: the first is not
        scene.asked[str(number)].set_result(None)
    await until_idle()
    assert len(scene.asked) == MAX_IN_FLIGHT
    scene.asked["0"].set_result(None)
    await until_idle()
    assert len(scene.asked) == 2 * MAX_IN_FLIGHT
    run.cancel()
    await asyncio.wait({run})
    assert len(scene.cancelled) == MAX_IN_FLIGHT
    assert scene.count("CANCELLED") == MAX_IN_FLIGHT


@pytest.mark.parametrize(
    ("error", "says", "code"),
    [
        (NotFound("no such model."), "NOT_FOUND: no such model.", "NOT_FOUND"),
        (RuntimeError("secret"), "INTERNAL: internal error", "INTERNAL"),
    ],
)
async def test_an_error_of_a_request_is_its_answer(error: Exception, says: str, code: str) -> None:
    scene = Scene()
    run = scene.start(requests_of(3))
    await until_idle()
    scene.asked["1"].set_exception(error)
    for each in "02":
        scene.asked[each].set_result(None)
    await run
    assert scene.ids() == ["0", "1", "2"]
    assert [response.error_message.startswith(says) for response in scene.written] == [False, True, False]
    assert "secret" not in scene.written[1].error_message
    assert (scene.count("OK"), scene.count(code)) == (2, 1)


async def test_a_request_that_can_t_be_read_ends_the_stream_after_the_others() -> None:
    scene = Scene()
    run = scene.start(requests_of(2, then=InvalidRequest("no message.")))
    await until_idle()
    for each in scene.asked.values():
        each.set_result(None)
    with pytest.raises(InvalidRequest, match="no message"):
        await run
    assert scene.ids() == ["0", "1"]


async def test_closing_answers_what_was_read_and_no_more() -> None:
    scene = Scene()
    run = scene.start(silence())
    await until_idle()
    scene.closing.set()
    await until_idle()
    assert not run.done()
    for each in scene.asked.values():
        each.set_result(None)
    with pytest.raises(Unavailable, match="stopping"):
        await run
    assert scene.ids() == ["0", "1"]


async def test_closing_is_no_error_where_all_is_read() -> None:
    scene = Scene()
    run = scene.start(requests_of(1))
    await until_idle()
    scene.closing.set()
    await until_idle()
    scene.asked["0"].set_result(None)
    await run
    assert scene.ids() == ["0"]


async def test_the_final_response_is_marked_for_those_who_ask() -> None:
    scene = Scene()

    async def requests() -> AsyncIterator[pb.ModelInferRequest]:
        flag = {"triton_enable_empty_final_response": pb.InferParameter(bool_param=True)}
        yield pb.ModelInferRequest(id="a", parameters=flag)
        yield pb.ModelInferRequest(id="b", parameters=flag)
        yield pb.ModelInferRequest(id="c")

    run = scene.start(requests())
    await until_idle()
    scene.asked["a"].set_result(None)
    scene.asked["b"].set_exception(NotFound("nobody"))
    scene.asked["c"].set_result(None)
    await run
    marked = [response.infer_response.parameters["triton_final_response"].bool_param for response in scene.written]
    assert marked == [True, True, False]
