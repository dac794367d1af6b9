"""Errors of a call, built from the information of gRPC and the server."""

import enum
from typing import Any, Protocol

from dragoman_client.pb import rpc_pb2


class ClientError(Exception):
    """A call failed. The message is the server's, or explains why there was none.

    `code` is the name of the gRPC status; `request_id` is the call's id in the server's log, empty if no server
    answered; `field` names the invalid field of the request, such as `texts[3]`; `retry_after_seconds` is the server's
    hint, if it gave one.
    """

    def __init__(
        self, message: str, code: str, request_id: str = "", field: str = "", retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id
        self.field = field
        self.retry_after_seconds = retry_after_seconds

    @property
    def path(self) -> tuple[str | int, ...]:
        """Return the names and indices that `field` consists of, such as `("texts", 3)`."""
        parts = self.field.replace("]", "").replace("[", ".").split(".") if self.field else []
        return tuple(int(part) if part.isdecimal() else part for part in parts)

    def renamed(self, name: str) -> "ClientError":
        """Return the same error with another name for the invalid field in its message, such as the line of a file."""
        message = str(self).replace(self.field, name, 1) if self.field else str(self)
        return ClientError(message, self.code, self.request_id, self.field, self.retry_after_seconds)


class NoServer(ClientError):
    """No server answers at this address."""


class HttpPort(NoServer):
    """What answers at this address uses HTTP/1.1: it is another port of a server, or none of Dragoman."""


class TlsAdvice(enum.Enum):
    """What to do if there is no TLS connection; programs with their own messages distinguish the cases by these."""

    RENEW = "have it renewed."
    CHECK_CLOCKS = "check the clocks."
    TRUST = "name its certificate authority with Tls(authorities=...)."
    RENAME = "use the name in the certificate."
    OMIT_TLS = "connect without tls."
    MEND_FILES = "they must be PEM, and certificate and key must match."
    USE_TLS = "if it uses TLS, give tls=Tls()."
    SHOW_CERTIFICATE = "if it requires a certificate, give one that it trusts with Tls(certificate=..., key=...)."


class NotSecure(ClientError):
    """There is no TLS connection: certificates do not match, or only one side uses TLS.

    The message is `problem` followed by the text of `advice`.
    """

    def __init__(self, problem: str, advice: TlsAdvice, code: str) -> None:
        super().__init__(f"{problem}; {advice.value}", code)
        self.problem = problem
        self.advice = advice


class RpcError(Protocol):
    """The common interface of the errors of gRPC and of its asyncio API."""

    def code(self) -> Any:
        """Return the status."""

    def details(self) -> str | None:
        """Return the status message."""

    def trailing_metadata(self) -> Any:
        """Return pairs of key and value."""


# A part of gRPC's message for a failed handshake, the problem, and what to do.
_HANDSHAKES = (
    ("certificate has expired", "the server's certificate has expired", TlsAdvice.RENEW),
    ("certificate is not yet valid", "the server's certificate is not valid yet", TlsAdvice.CHECK_CLOCKS),
    ("CERTIFICATE_VERIFY_FAILED", "the server's certificate is not trusted", TlsAdvice.TRUST),
    ("Hostname Verification", "the server's certificate is for another name", TlsAdvice.RENAME),
    ("WRONG_VERSION_NUMBER", "the server does not use TLS", TlsAdvice.OMIT_TLS),
    ("Failed to create security handshaker", "the files for TLS can't be used", TlsAdvice.MEND_FILES),
)
_CLOSED = ("Socket closed", "Handshake read failed (Socket closed)", "Connection reset by peer")


def client_error(error: RpcError, server: str, *, uses_tls: bool) -> ClientError:
    """Return the client's error for a failed call to `server`."""
    trailers: dict[str, Any] = dict(error.trailing_metadata() or ())
    code, message = error.code().name, error.details() or ""
    request_id = str(trailers.get("x-request-id", ""))
    if code == "UNAVAILABLE" and not request_id:
        return _no_connection(message, code, server, uses_tls)
    if code == "UNIMPLEMENTED" and not request_id:  # gRPC's own, or a proxy's
        message = f"{server} has no such call ({message}): upgrade it, or give the address of a Dragoman server."
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


def _no_connection(message: str, code: str, server: str, uses_tls: bool) -> ClientError:
    """Return why no server answered, derived from gRPC's message, which names the layer that failed."""
    for sign, problem, advice in _HANDSHAKES:
        if sign in message:
            return NotSecure(f"no TLS connection to {server}: {problem}", advice, code)
    if "http1" in message:
        return HttpPort(f"{server} is a port for HTTP; give the server's port for gRPC, by default 50051.", code)
    reason = message.rpartition(": ")[2]
    if reason in _CLOSED:
        advice = TlsAdvice.SHOW_CERTIFICATE if uses_tls else TlsAdvice.USE_TLS
        return NotSecure(f"{server} closed the connection", advice, code)
    return NoServer(f"no server answers at {server} ({reason}).", code)
