"""The synchronous client: plain types in and out, clear errors, retries where they help."""

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

import grpc

from dragoman_client import messages
from dragoman_client.connection import DEFAULT_SECONDS, DEFAULT_SERVER, Connection, Tls, pause_seconds
from dragoman_client.errors import ClientError
from dragoman_client.pb import translation_pb2 as pb
from dragoman_client.request import RequestFields
from dragoman_client.translation import DetectedLanguage, Model, StreamEvent, Translation


class Client:
    """A connection to one server, or to several equivalent ones; thread-safe.

    Close it, or use it in a `with` statement.
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
        """Connect at the first call.

        `server` is `host:port`, several comma-separated `ip:port`, or `dns:///name:port` for all addresses of a name;
        several servers get calls in turn, as long as they are healthy. Calls that a server can't accept, or abandons as
        it stops, are retried. `timeout_seconds` bounds one call; `patience_seconds` bounds the retries while a server
        is overloaded or the key's quota is exhausted. Without `tls`, everything, including the `api_key`, is sent
        unencrypted.

        Raises:
            OSError: a file of `tls` can't be read.
            ValueError: an address without a port, of the web, or several that are not all IPv4 or all IPv6.
        """
        self._connection = to = Connection(server, timeout_seconds, patience_seconds, tls, api_key)
        self._channel = (
            grpc.secure_channel(to.target.target, to.credentials, to.target.options)
            if to.credentials
            else grpc.insecure_channel(to.target.target, to.target.options)
        )
        self._closed = threading.Event()
        self._translate = self._channel.unary_unary(*messages.TRANSLATE)
        self._translate_stream = self._channel.unary_stream(*messages.TRANSLATE_STREAM)
        self._detect_language = self._channel.unary_unary(*messages.DETECT_LANGUAGE)
        self._list_models = self._channel.unary_unary(*messages.LIST_MODELS)

    @property
    def server(self) -> str:
        """Return the address as given."""
        return self._connection.server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; calls in progress fail with CANCELLED."""
        self._closed.set()
        self._channel.close()

    def translate(
        self,
        texts: Sequence[str],
        source_language_code: str,
        target_language_code: str,
        **fields: Unpack[RequestFields],
    ) -> list[Translation]:
        """Translate texts; the result has one translation per text, in order.

        If `source_language_code` is empty, the server detects each text's language.

        Raises:
            TypeError: a keyword is unknown, or a value has the wrong type, such as a string instead of a list.
            NoServer: no server answers.
            ClientError: the server rejected the call or failed.
        """
        request = messages.request_to_pb(texts, source_language_code, target_language_code, fields)
        return messages.translations_from_pb(self._answer(self._translate, request))

    def stream(
        self,
        texts: Sequence[str],
        source_language_code: str,
        target_language_code: str,
        **fields: Unpack[RequestFields],
    ) -> Generator[StreamEvent, None, None]:
        """Translate texts and yield the translations as they grow; a text's deltas add up to its translation.

        Closing the generator, or dropping the last reference to it, cancels the call.

        Raises:
            TypeError: as for `translate`, immediately.
            NoServer: no server answers.
            ClientError: the server rejected the call or failed. Calls are not retried if the server is overloaded.
        """
        return self._events(messages.request_to_pb(texts, source_language_code, target_language_code, fields))

    def _events(self, request: pb.TranslateRequest) -> Generator[StreamEvent, None, None]:
        to = self._connection
        call = self._translate_stream(request, timeout=to.timeout_seconds, metadata=to.metadata)
        try:
            with self._errors():
                for response in call:
                    yield messages.event_from_pb(response)
        finally:
            call.cancel()  # type: ignore[no-untyped-call]

    def detect(self, texts: Sequence[str]) -> list[tuple[DetectedLanguage, ...]]:
        """Detect the possible languages of each text, most likely first; "und" if none is likely.

        Raises:
            TypeError: `texts` is a string, or contains anything but strings.
            NoServer: no server answers.
            ClientError: the server rejected the call or failed.
        """
        request = messages.detection_request_to_pb(texts)
        return messages.detections_from_pb(self._answer(self._detect_language, request))

    def models(self) -> list[Model]:
        """List the models loaded by the server, ordered by name, each with its highest version first.

        Raises:
            NoServer: no server answers.
            ClientError: the server rejected the call or failed.
        """
        return messages.models_from_pb(self._answer(self._list_models, pb.ListModelsRequest()))

    def _answer(self, call: Callable[..., Any], request: object) -> Any:
        """Return the answer to a call, which is repeated while the server says when to.

        Raises:
            ClientError: the call failed.
        """
        to = self._connection
        give_up_seconds = to.give_up_seconds()
        while True:
            try:
                with self._errors():
                    return call(request, timeout=to.timeout_seconds, metadata=to.metadata)
            except ClientError as raised:
                error = raised
            if self._closed.wait(pause_seconds(error, give_up_seconds)):
                raise error

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert gRPC's errors to the client's.

        Raises:
            ClientError: the call failed.
        """
        try:
            yield
        except grpc.RpcError as error:
            raise self._connection.error(error) from None
