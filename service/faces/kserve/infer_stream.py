"""Streams of requests: several run at a time, each is answered once and in order."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from service.calls.failures import code_of
from service.calls.open_calls import Hold
from service.calls.pipeline import CallPipeline, Metadata
from service.domain.call import ENGINE_PHASES, Phase, begin_call, current_call
from service.domain.errors import ServiceError, Unavailable
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb

# Per stream. Beyond this limit nothing more is read, and gRPC's flow control makes the sender wait.
MAX_IN_FLIGHT = 64

Infer = Callable[[pb.ModelInferRequest], Awaitable[pb.ModelInferResponse]]
Write = Callable[[pb.ModelStreamInferResponse], Awaitable[Any]]

_Held = tuple[pb.ModelStreamInferResponse, int]


class InferStream:
    """Answers in the order of requests, as Triton does for models that are not decoupled: an error carries no id that
    Triton's clients would see. Cancelling `run` cancels all unanswered requests."""

    def __init__(self, infer: Infer, pipeline: CallPipeline, hold: Hold, metadata: Metadata = ()) -> None:
        """Serve each request as a call, with the stream's metadata; it and its answer count towards `hold`."""
        self.seconds: Counter[Phase] = Counter()  # over all requests so far
        self._infer = infer
        self._pipeline = pipeline
        self._hold = hold
        self._metadata = metadata
        self._room = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._answers: asyncio.Queue[asyncio.Task[_Held] | None] = asyncio.Queue()
        self._error: ServiceError | None = None

    async def run(self, requests: AsyncIterator[pb.ModelInferRequest], write: Write, closing: asyncio.Event) -> None:
        """Answer all requests; once `closing` is set, only those already read.

        Raise a `ServiceError` if a request can't be read, memory is short, or the server closes, after earlier answers.
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
        if reading.done():  # everything has been read
            return
        self._error = Unavailable(
            "the server is stopping and has not accepted the unanswered requests", advice="try another server"
        )
        reading.cancel()

    async def _answer(self, request: pb.ModelInferRequest, num_bytes: int) -> "_Held":
        """Return the answer and the bytes held until it is written: its own and the `num_bytes` so far."""
        call = current_call().another()
        begin_call(call)

        async def answered() -> _Held:
            response = pb.ModelStreamInferResponse(infer_response=await self._infer(request))
            answer_bytes = response.ByteSize()
            self._hold.grow(answer_bytes)
            return response, num_bytes + answer_bytes

        try:
            response, num_bytes = await self._pipeline.serve(call, answered, self._metadata)
        except ServiceError as error:
            failed = pb.ModelInferResponse(id=request.id)
            response = pb.ModelStreamInferResponse(error_message=f"{code_of(error)}: {error}", infer_response=failed)
        finally:
            self.seconds.update({phase: call.seconds(phase) for phase in ENGINE_PHASES})
        if request.parameters["triton_enable_empty_final_response"].bool_param:
            response.infer_response.parameters["triton_final_response"].bool_param = True
        return response, num_bytes
