"""A stream of requests, several at work at a time, each answered once and in its turn."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from service.domain import caller, origin
from service.domain.call_record import ENGINE_PHASES, Phase
from service.domain.errors import ServiceError, Unavailable
from service.faces.grpc.byte_budget import Hold
from service.faces.grpc.failures import status_of_failure
from service.faces.grpc.observer import CallObserver, Metadata
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.grpc.status import RpcStatus
from service.observe.metrics import Metrics

# Of one stream. Who sends more waits: nothing more is read, and gRPC's flow control holds the sender up.
MAX_IN_FLIGHT = 64

Infer = Callable[[pb.ModelInferRequest], Awaitable[pb.ModelInferResponse]]
Write = Callable[[pb.ModelStreamInferResponse], Awaitable[Any]]

_Held = tuple[pb.ModelStreamInferResponse, int]


class InferStream:
    """Answers in the order of requests, as Triton does for models that are not decoupled: an error has no id that its
    clients would see. Cancelling `run` cancels all that is not answered."""

    def __init__(
        self,
        infer: Infer,
        metrics: Metrics,
        observer: CallObserver,
        hold: Hold,
        method: str,
        metadata: Metadata = (),
    ) -> None:
        """Each request is observed as a call of `method`, with the stream's metadata. It counts in `hold`, and so does
        its answer until that is written."""
        self.seconds: Counter[Phase] = Counter()  # in all requests so far
        self._infer = infer
        self._metrics = metrics
        self._observer = observer
        self._hold = hold
        self._method = method
        self._metadata = metadata
        self._room = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._answers: asyncio.Queue[asyncio.Task[_Held] | None] = asyncio.Queue()
        self._error: ServiceError | None = None

    async def run(self, requests: AsyncIterator[pb.ModelInferRequest], write: Write, closing: asyncio.Event) -> None:
        """Answer all requests; once `closing`, only those that have been read.

        Raises:
            ServiceError: a request could not be read, there is no room for it, or the server is closing; what was read
                before is answered.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(self._read(requests, tasks))
                ending = tasks.create_task(self._end(reading, closing))
                while (task := await self._answers.get()) is not None:
                    answer, num_bytes = await task
                    await write(answer)
                    self._hold.shrink(num_bytes)
                    self._room.release()
                ending.cancel()
        finally:
            self._hold.release()
        if self._error is not None:
            raise self._error

    async def _read(self, requests: AsyncIterator[pb.ModelInferRequest], tasks: asyncio.TaskGroup) -> None:
        try:
            while await self._room.acquire():
                request = await anext(requests)
                num_bytes = request.ByteSize()
                self._hold.grow(num_bytes)
                self._answers.put_nowait(tasks.create_task(self._answer(request, num_bytes)))
        except StopAsyncIteration:
            pass
        except ServiceError as error:
            self._error = error
        finally:
            self._answers.put_nowait(None)

    async def _end(self, reading: asyncio.Task[None], closing: asyncio.Event) -> None:
        await closing.wait()
        if reading.done():  # all that there was has been read
            return
        self._error = Unavailable("the server is stopping; what is not answered was not taken. Try another server.")
        reading.cancel()

    async def _answer(self, request: pb.ModelInferRequest, num_bytes: int) -> "_Held":
        """With the bytes that are held until the answer is written: it and the request, which has `num_bytes`."""
        origin.begin_another()
        with self._observer.call(self._method, self._metadata) as record:
            try:
                with caller.call():
                    response = pb.ModelStreamInferResponse(infer_response=await self._infer(request))
                answer_bytes = response.ByteSize()
                self._hold.grow(answer_bytes)
                num_bytes += answer_bytes
            except asyncio.CancelledError:
                record.code = grpc.StatusCode.CANCELLED.name
                raise
            except Exception as error:
                status = status_of_failure(error, self._method, self._metrics)
                record.code, record.message = status.code.name, status.redacted
                response = _failure(request, status)
            finally:
                self.seconds.update({phase: record.seconds(phase) for phase in ENGINE_PHASES})
        if request.parameters["triton_enable_empty_final_response"].bool_param:
            response.infer_response.parameters["triton_final_response"].bool_param = True
        return response, num_bytes


def _failure(request: pb.ModelInferRequest, status: RpcStatus) -> pb.ModelStreamInferResponse:
    return pb.ModelStreamInferResponse(
        error_message=f"{status.code.name}: {status.message}", infer_response=pb.ModelInferResponse(id=request.id)
    )
