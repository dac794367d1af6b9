"""The synchronous client: plain types in and out, clear errors, retries where they help."""

import threading
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Self, Unpack

import grpc

from dragoman_client import messages
from dragoman_client.connection import DEFAULT_SECONDS, DEFAULT_SERVER, Connection, Tls, pause_seconds
from dragoman_client.pb import translation_pb2 as pb
from dragoman_client.request import RequestFields
from dragoman_client.translation import DetectedLanguage, Model, StreamEvent, Translation


class Client:
    """A connection to one server, or to several that serve the same; safe to use from many threads.

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

        `server` is `host:port`, several `ip:port` with commas between, or `dns:///name:port` for all addresses of a
        name; several get calls in turn, as long as they are healthy. Calls that a server can't take, or gives up as it
        stops, are made again. `timeout_seconds` bounds one call; `patience_seconds` is how long to go on asking a
        server that is overloaded, or where the key's quota is used up. Without `tls` everything, the `api_key` too,
        goes over the network as it is.

        Raises:
            OSError: a file of `tls` can't be read.
            ValueError: several addresses that are not all of IPv4 or all of IPv6.
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
        """Return the address as it was given."""
        return self._connection.server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; calls under way fail with CANCELLED."""
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

        An empty `source_language_code` has the server detect each text's language.

        Raises:
            TypeError: a keyword is unknown, or a value of the wrong type, such as a string in the place of a list.
            NoServer: no server answers.
            ClientError: the server refused or failed.
        """
        request = messages.request_to_pb(texts, source_language_code, target_language_code, fields)
        to = self._connection
        give_up_seconds = to.give_up_seconds()
        while True:
            try:
                response = self._translate(request, timeout=to.timeout_seconds, metadata=to.metadata)
                return messages.translations_from_pb(response)
            except grpc.RpcError as rpc_error:
                error = to.error(rpc_error)
            if self._closed.wait(pause_seconds(error, give_up_seconds)):
                raise error

    def stream(
        self,
        texts: Sequence[str],
        source_language_code: str,
        target_language_code: str,
        **fields: Unpack[RequestFields],
    ) -> Generator[StreamEvent, None, None]:
        """Translate texts and yield the translations as they grow; a text's deltas together are its translation.

        A generator that is closed, or no longer referred to, cancels the call.

        Raises:
            TypeError: as for `translate`, at once.
            NoServer: no server answers.
            ClientError: the server refused or failed. A server that is overloaded is not asked again.
        """
        return self._events(messages.request_to_pb(texts, source_language_code, target_language_code, fields))

    def _events(self, request: pb.TranslateRequest) -> Generator[StreamEvent, None, None]:
        to = self._connection
        call = self._translate_stream(request, timeout=to.timeout_seconds, metadata=to.metadata)
        try:
            for response in call:
                yield messages.event_from_pb(response)
        except grpc.RpcError as error:
            raise to.error(error) from None
        finally:
            call.cancel()  # type: ignore[no-untyped-call]

    def detect(self, texts: Sequence[str]) -> list[tuple[DetectedLanguage, ...]]:
        """Detect the languages that each text may be in, best first; a text without letters is in "und".

        Raises:
            TypeError: `texts` is a string, or holds something else than strings.
            NoServer: no server answers.
            ClientError: the server refused or failed.
        """
        request, to = messages.detection_request_to_pb(texts), self._connection
        try:
            response = self._detect_language(request, timeout=to.timeout_seconds, metadata=to.metadata)
        except grpc.RpcError as error:
            raise to.error(error) from None
        return messages.detections_from_pb(response)

    def models(self) -> list[Model]:
        """List the models that the server has loaded, in order of names, and of each the highest version first.

        Raises:
            NoServer: no server answers.
            ClientError: the server refused or failed.
        """
        to = self._connection
        try:
            response = self._list_models(pb.ListModelsRequest(), timeout=to.timeout_seconds, metadata=to.metadata)
        except grpc.RpcError as error:
            raise to.error(error) from None
        return messages.models_from_pb(response)
