"""The Python client: plain types in and out, clear errors, retries where they help. Safe to use from many threads."""

import dataclasses
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

import grpc

from dragoman_client.options import MimeType, Options, Priority, SplitSentences, Term
from dragoman_client.pb import rpc_pb2
from dragoman_client.pb import translation_pb2 as pb
from dragoman_client.targets import target_of
from dragoman_client.translation import (
    AlignedSpan,
    DetectedLanguage,
    FinishReason,
    Flag,
    Hypothesis,
    Model,
    Segment,
    StreamEvent,
    Translation,
)

DEFAULT_SERVER = "127.0.0.1:50051"

_METHODS = "/dragoman.v1.TranslationService/"

_PRIORITIES = {
    Priority.LOW: pb.PRIORITY_LOW,
    Priority.NORMAL: pb.PRIORITY_NORMAL,
    Priority.HIGH: pb.PRIORITY_HIGH,
}

_SPLITS = {
    SplitSentences.OFF: pb.SPLIT_SENTENCES_OFF,
    SplitSentences.ON: pb.SPLIT_SENTENCES_ON,
    SplitSentences.NO_NEWLINES: pb.SPLIT_SENTENCES_NO_NEWLINES,
}

# What gRPC says of a handshake that failed, and what that means for who called.
_TLS_REASONS = {
    "certificate has expired": "the server's certificate has expired; have it renewed.",
    "certificate is not yet valid": "the server's certificate is not valid yet; look at the clocks.",
    "CERTIFICATE_VERIFY_FAILED": "the server's certificate is not trusted; name its authority with --tls-ca.",
    "Hostname Verification": "the server's certificate is for another name; call the server by the one in it.",
    "WRONG_VERSION_NUMBER": "the server speaks no TLS; call it without.",
    "Failed to create security handshaker": "the files for TLS can't be used; they must be PEM, and the certificate "
    "and key a pair.",
}
_CLOSED = ("Socket closed", "Handshake read failed (Socket closed)", "Connection reset by peer")
_HINT_WITHOUT_TLS = "if it speaks TLS, say --tls."
_HINT_WITH_TLS = "if it asks for a certificate, give one that it trusts with --tls-certificate and --tls-key."


class ClientError(Exception):
    """A call failed. The message is the server's, or says why there was none.

    `code` is the name of the gRPC status; `request_id` is what the server's log calls the call, empty if no server
    answered; `field` names the request's field that is wrong, such as `texts[3]`; `retry_after_seconds` is the
    server's hint where it gave one.
    """

    def __init__(
        self, message: str, code: str, request_id: str = "", field: str = "", retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id
        self.field = field
        self.retry_after_seconds = retry_after_seconds


class NoServer(ClientError):
    """Nobody answers at this address."""


class NotSecure(ClientError):
    """There is no TLS connection: certificates do not fit, or only one side wants it."""


@dataclass(frozen=True, slots=True)
class Tls:
    """How to speak TLS with a server; all files are PEM.

    `authorities` are who may have signed the server's certificate, by default those that gRPC trusts. A server that
    asks for it is shown `certificate`, which has its `key`.
    """

    authorities: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """What gRPC makes of it.

        Raises:
            OSError: a file can't be read.
        """
        files = (self.authorities, self.key, self.certificate)
        authorities, key, certificate = (path.read_bytes() if path else None for path in files)
        return grpc.ssl_channel_credentials(authorities, key, certificate)


class RequestFields(TypedDict, total=False):
    """What a call may ask for beside texts and languages; what each is, `proto/dragoman/v1/translation.proto` tells.

    An empty `model` is the server's nearest to this pair, an empty `model_version` its highest.
    """

    model: str
    model_version: str
    options: Options | None
    priority: Priority
    mime_type: MimeType
    split_sentences: SplitSentences
    preserve_formatting: bool
    target_prefixes: Sequence[str]
    glossary: str
    terms: Sequence[Term]
    return_alignments: bool
    strict: bool
    labels: Mapping[str, str]


class Client:
    """A connection to one server, or to several that serve the same. Close it, or use it in a `with` statement."""

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        timeout_seconds: float = 60.0,
        patience_seconds: float = 60.0,
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
        self.server = server
        self._timeout_seconds = timeout_seconds
        self._patience_seconds = patience_seconds
        self._uses_tls = tls is not None
        self._metadata = (("authorization", f"Bearer {api_key}"),) if api_key else ()
        to = target_of(server)
        self._channel = (
            grpc.secure_channel(to.target, tls.credentials(), to.options)
            if tls
            else grpc.insecure_channel(to.target, to.options)
        )
        self._closed = threading.Event()
        self._translate = self._channel.unary_unary(
            _METHODS + "Translate", pb.TranslateRequest.SerializeToString, pb.TranslateResponse.FromString
        )
        self._translate_stream = self._channel.unary_stream(
            _METHODS + "TranslateStream", pb.TranslateRequest.SerializeToString, pb.TranslateStreamResponse.FromString
        )
        self._detect_language = self._channel.unary_unary(
            _METHODS + "DetectLanguage",
            pb.DetectLanguageRequest.SerializeToString,
            pb.DetectLanguageResponse.FromString,
        )
        self._list_models = self._channel.unary_unary(
            _METHODS + "ListModels", pb.ListModelsRequest.SerializeToString, pb.ListModelsResponse.FromString
        )

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
            NoServer: nobody answers.
            ClientError: the server refused or failed.
        """
        request = _request(texts, source_language_code, target_language_code, fields)
        give_up_seconds = time.monotonic() + self._patience_seconds
        while True:
            try:
                response = self._translate(request, timeout=self._timeout_seconds, metadata=self._metadata)
                return [_translation_from_pb(translation) for translation in response.translations]
            except grpc.RpcError as rpc_error:
                error = self._error(rpc_error)
            pause = error.retry_after_seconds
            if pause is None or time.monotonic() + pause > give_up_seconds:
                raise error
            if self._closed.wait(pause):
                raise error

    def stream(
        self,
        texts: Sequence[str],
        source_language_code: str,
        target_language_code: str,
        **fields: Unpack[RequestFields],
    ) -> Iterator[StreamEvent]:
        """Translate texts and yield the translations as they grow; a text's deltas together are its translation.

        Raises:
            NoServer: nobody answers.
            ClientError: the server refused or failed. A server that is overloaded is not asked again.
        """
        request = _request(texts, source_language_code, target_language_code, fields)
        try:
            for part in self._translate_stream(request, timeout=self._timeout_seconds, metadata=self._metadata):
                translation = _translation_from_pb(part.translation) if part.HasField("translation") else None
                yield StreamEvent(part.text_index, part.delta, translation, part.model, part.model_version)
        except grpc.RpcError as error:
            raise self._error(error) from None

    def detect(self, texts: Sequence[str]) -> list[tuple[DetectedLanguage, ...]]:
        """Tell which languages each text may be in, best first; a text without letters is in "und".

        Raises:
            NoServer: nobody answers.
            ClientError: the server refused or failed.
        """
        try:
            response = self._detect_language(
                pb.DetectLanguageRequest(texts=texts), timeout=self._timeout_seconds, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise self._error(error) from None
        return [
            tuple(DetectedLanguage(each.language_code, each.confidence) for each in detection.languages)
            for detection in response.detections
        ]

    def models(self) -> list[Model]:
        """The models that the server has loaded, in order of names, and of each the highest version first.

        Raises:
            NoServer: nobody answers.
            ClientError: the server refused or failed.
        """
        try:
            response = self._list_models(pb.ListModelsRequest(), timeout=self._timeout_seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._error(error) from None
        return [_model_from_pb(model) for model in response.models]

    def _no_connection(self, message: str, code: str) -> ClientError:
        """Why no server answered, out of what gRPC says, which names the layer of its code that failed."""
        for sign, reason in _TLS_REASONS.items():
            if sign in message:
                return NotSecure(f"no TLS connection to {self.server}: {reason}", code)
        reason = message.rpartition(": ")[2]
        if reason in _CLOSED:
            hint = _HINT_WITH_TLS if self._uses_tls else _HINT_WITHOUT_TLS
            return NotSecure(f"{self.server} closed the connection; {hint}", code)
        return NoServer(f"no server answers at {self.server} ({reason}).", code)

    def _error(self, error: grpc.RpcError) -> ClientError:
        trailers: dict[str, Any] = {item.key: item.value for item in error.trailing_metadata() or ()}
        code, message = error.code().name, error.details() or ""
        request_id = str(trailers.get("x-request-id", ""))
        if code == "UNAVAILABLE" and not request_id:
            return self._no_connection(message, code)
        field, retry_after_seconds = "", None
        for detail in rpc_pb2.Status.FromString(trailers.get("grpc-status-details-bin", b"")).details:
            kind = detail.type_url.rpartition("/")[2]
            if kind == "google.rpc.BadRequest":
                violations = rpc_pb2.BadRequest.FromString(detail.value).field_violations
                field = violations[0].field if violations else ""
            elif kind == "google.rpc.RetryInfo":
                delay = rpc_pb2.RetryInfo.FromString(detail.value).retry_delay
                retry_after_seconds = delay.ToTimedelta().total_seconds()
        return ClientError(message, code, request_id, field, retry_after_seconds)


def _request(
    texts: Sequence[str], source_language_code: str, target_language_code: str, fields: RequestFields
) -> pb.TranslateRequest:
    return pb.TranslateRequest(
        texts=texts,
        source_language_code=source_language_code,
        target_language_code=target_language_code,
        model=fields.get("model", ""),
        model_version=fields.get("model_version", ""),
        options=_options_to_pb(fields.get("options") or Options()),
        priority=_PRIORITIES[fields.get("priority", Priority.NORMAL)],
        mime_type=fields.get("mime_type", MimeType.PLAIN).value,
        split_sentences=_SPLITS[fields.get("split_sentences", SplitSentences.ON)],
        preserve_formatting=fields.get("preserve_formatting", False),
        target_prefixes=fields.get("target_prefixes", ()),
        glossary=fields.get("glossary", ""),
        terms=[
            pb.Term(source=term.source, target=term.target, case_sensitive=term.case_sensitive)
            for term in fields.get("terms", ())
        ],
        return_alignments=fields.get("return_alignments", False),
        strict=fields.get("strict", False),
        labels=dict(fields.get("labels", {})),
    )


def _options_to_pb(options: Options) -> pb.DecodingOptions:
    return pb.DecodingOptions(**{each.name: getattr(options, each.name) for each in dataclasses.fields(options)})


def _translation_from_pb(message: pb.Translation) -> Translation:
    return Translation(
        text=message.text,
        hypotheses=tuple(
            Hypothesis(
                text=hypothesis.text,
                score=hypothesis.score if hypothesis.HasField("score") else None,
                num_tokens=hypothesis.num_tokens,
            )
            for hypothesis in message.hypotheses
        ),
        finish_reason=_finish_reason(message.finish_reason),
        num_source_tokens=message.num_source_tokens,
        segments=tuple(_segment_from_pb(segment) for segment in message.segments),
        alignment=tuple(
            AlignedSpan(span.source_start, span.source_end, span.target_start, span.target_end)
            for span in message.alignment
        ),
        detected_language_code=message.detected_language_code,
    )


def _segment_from_pb(message: pb.Segment) -> Segment:
    return Segment(
        source_start=message.source_start,
        source_end=message.source_end,
        target_start=message.target_start,
        target_end=message.target_end,
        finish_reason=_finish_reason(message.finish_reason),
        num_source_tokens=message.num_source_tokens,
        num_output_tokens=message.num_output_tokens,
        flags=tuple(Flag[pb.Flag.Name(flag).removeprefix("FLAG_")] for flag in message.flags),
    )


def _finish_reason(value: pb.FinishReason) -> FinishReason:
    return FinishReason[pb.FinishReason.Name(value).removeprefix("FINISH_REASON_")]


def _model_from_pb(message: pb.Model) -> Model:
    return Model(
        name=message.name,
        version=message.version,
        language_pairs=tuple((pair.source_language_code, pair.target_language_code) for pair in message.language_pairs),
        max_source_tokens=message.max_source_tokens,
        max_output_tokens=message.max_output_tokens,
        default_options=Options(**{field.name: value for field, value in message.default_options.ListFields()}),
        precision=message.precision,
        any_to_any_language_codes=tuple(message.any_to_any_language_codes),
    )
