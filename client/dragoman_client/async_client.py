"""The asyncio client: the synchronous one's interface, with coroutines."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

import grpc
import grpc.aio

from dragoman_client import messages
from dragoman_client.connection import DEFAULT_SECONDS, DEFAULT_SERVER, Connection, Tls, pause_seconds
from dragoman_client.errors import ClientError
from dragoman_client.pb import translation_pb2 as pb
from dragoman_client.request import RequestFields
from dragoman_client.translation import DetectedLanguage, Model, StreamEvent, Translation


class AsyncClient:
    """A connection to one server, or to several equivalent ones, for the event loop in which it is created.

    Close it, or use it in an `async with` statement. Cancelling a task cancels its call.
    """

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        timeout_seconds: float = DEFAULT_SECONDS,
        patience_seconds: float = DEFAULT_SECONDS,
        *,
        tls: Tls | None = None,
        api_key: str = "",
    ) -> None:
        """Connect at the first call; the parameters are those of `Client`.

        Raises:
            OSError: a file of `tls` can't be read.
            RuntimeError: no event loop is running.
            ValueError: an address without a port, of the web, or several that are not all IPv4 or all IPv6.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError("AsyncClient needs a running event loop; create it inside a coroutine.") from None
        self._connection = to = Connection(server, timeout_seconds, patience_seconds, tls, api_key)
        self._channel = (
            grpc.aio.secure_channel(to.target.target, to.credentials, to.target.options)
            if to.credentials
            else grpc.aio.insecure_channel(to.target.target, to.target.options)
        )
        self._closed = asyncio.Event()
        self._translate = self._channel.unary_unary(*messages.TRANSLATE)
        self._translate_stream = self._channel.unary_stream(*messages.TRANSLATE_STREAM)
        self._detect_language = self._channel.unary_unary(*messages.DETECT_LANGUAGE)
        self._list_models = self._channel.unary_unary(*messages.LIST_MODELS)

    @property
    def server(self) -> str:
        """Return the address as given."""
        return self._connection.server

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; calls in progress fail with CANCELLED."""
        self._closed.set()
        await self._channel.close(None)

    async def translate(
        self,
        texts: Sequence[str],
        source_language_code: str,
        target_language_code: str,
        **fields: Unpack[RequestFields],
    ) -> list[Translation]:
        """Translate texts; the result has one translation per text, in order.

        Raises:
            TypeError, NoServer, ClientError: as for `Client.translate`.
        """
        request = messages.request_to_pb(texts, source_language_code, target_language_code, fields)
        return messages.translations_from_pb(await self._answer(self._translate, request))

    def stream(
        self,
        texts: Sequence[str],
        source_language_code: str,
        target_language_code: str,
        **fields: Unpack[RequestFields],
    ) -> AsyncGenerator[StreamEvent, None]:
        """Translate texts and yield the translations as they grow; a text's deltas add up to its translation.

        Closing the generator, as `contextlib.aclosing` does, cancels the call.

        Raises:
            TypeError, NoServer, ClientError: as for `Client.stream`.
        """
        return self._events(messages.request_to_pb(texts, source_language_code, target_language_code, fields))

    async def _events(self, request: pb.TranslateRequest) -> AsyncGenerator[StreamEvent, None]:
        to = self._connection
        call = self._translate_stream(request, timeout=to.timeout_seconds, metadata=to.metadata)
        try:
            with self._errors():
                async for response in call:
                    yield messages.event_from_pb(response)
        finally:
            call.cancel()

    async def detect(self, texts: Sequence[str]) -> list[tuple[DetectedLanguage, ...]]:
        """Detect the possible languages of each text, most likely first; "und" if none is likely.

        Raises:
            TypeError, NoServer, ClientError: as for `Client.detect`.
        """
        request = messages.detection_request_to_pb(texts)
        return messages.detections_from_pb(await self._answer(self._detect_language, request))

    async def models(self) -> list[Model]:
        """List the models loaded by the server, ordered by name, each with its highest version first.

        Raises:
            NoServer, ClientError: as for `Client.models`.
        """
        return messages.models_from_pb(await self._answer(self._list_models, pb.ListModelsRequest()))

    async def _answer(self, call: Callable[..., Awaitable[Any]], request: object) -> Any:
        """Return the answer to a call, which is repeated while the server says when to.

        Raises:
            ClientError: the call failed.
        """
        to = self._connection
        give_up_seconds = to.give_up_seconds()
        while True:
            try:
                with self._errors():
                    return await call(request, timeout=to.timeout_seconds, metadata=to.metadata)
            except ClientError as raised:
                error = raised
            pause = pause_seconds(error, give_up_seconds)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), pause)
                raise error

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert gRPC's errors to the client's. Closing the channel cancels calls as if their tasks were cancelled.

        Raises:
            ClientError: the call failed.
            asyncio.CancelledError: the task was cancelled.
        """
        try:
            yield
        except grpc.RpcError as error:
            raise self._connection.error(error) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._closed.is_set() or (task is not None and task.cancelling()):
                raise
            raise ClientError("the client was closed.", "CANCELLED") from None
