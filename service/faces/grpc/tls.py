"""TLS for the ports of callers: certificate, key and authorities, which may be replaced while the server runs."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import grpc

from service.config.server_config import ServerConfig
from service.config.watched_files import FileProblem, WatchedFiles, read_file, warn_if_world_readable

_NO_PASSWORD = "no password"  # noqa: S105  # so that OpenSSL does not prompt for one on the terminal


@dataclass(frozen=True, slots=True)
class _Identity:
    """The server's certificate and key, and until when they are valid, in Unix time."""

    configuration: grpc.ServerCertificateConfiguration
    context: ssl.SSLContext
    not_after_seconds: float


class ServerTls:
    """Server side of TLS. New connections use the files read by the last `refresh`; open ones are not affected."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        """Read the files, or raise `FileProblem` if unreadable, mismatched or out of date.

        With `client_ca`, only accept clients with a certificate of one of these authorities.
        """
        paths = [certificate, key, *([client_ca] if client_ca else [])]
        self._files = WatchedFiles(paths, lambda: _read(certificate, key, client_ca))
        self._handed_out = self._files.current
        self._asks_clients = client_ca is not None
        warn_if_world_readable(key, "the TLS key")

    @property
    def not_after_seconds(self) -> float:
        """Return the end of the certificate's validity, in Unix time."""
        return self._files.current.not_after_seconds

    def refresh(self) -> bool:
        return self._files.refresh()

    def credentials(self) -> grpc.ServerCredentials:
        return grpc.dynamic_ssl_server_credentials(
            self._handed_out.configuration,
            self._fetch,  # type: ignore[arg-type]  # the stubs don't know that None means no change
            self._asks_clients,
        )

    def context(self) -> ssl.SSLContext:
        """Return a context for a port of HTTPS; each handshake takes the certificate that is current then."""
        first = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        first.verify_mode = ssl.CERT_REQUIRED if self._asks_clients else ssl.CERT_NONE

        def take_current(connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
            connection.context = self._files.current.context

        first.sni_callback = take_current
        return first

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the configuration if it has changed; gRPC calls this at each connection, on a thread of its own."""
        current = self._files.current
        if current is self._handed_out:
            return None
        self._handed_out = current
        return current.configuration


def tls_of(config: ServerConfig) -> ServerTls | None:
    """Return TLS as configured, or `None` without a certificate; raises as `ServerTls`."""
    if config.tls_certificate and config.tls_key:
        return ServerTls(config.tls_certificate, config.tls_key, config.tls_client_ca)
    return None


def _read(certificate: Path, key: Path, client_ca: Path | None) -> _Identity:
    chain, private = read_file(certificate, "the TLS certificate"), read_file(key, "the TLS key")
    authorities = read_file(client_ca, "authorities of clients' certificates") if client_ca else None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    from service.faces.grpc.certificate import (
        read_certificate,  # imported here: its library is heavy, and only needed with TLS
    )

    try:
        found = read_certificate(chain)
    except ValueError as error:
        raise FileProblem(f"{certificate} holds no certificate; it must be PEM, the server's own first.") from error
    try:
        context.load_cert_chain(certificate, key, _NO_PASSWORD)
    except ssl.SSLError as error:
        raise FileProblem(_why(error, certificate, key)) from error
    except OSError as error:
        raise FileProblem(f"{certificate} or {key} can't be read: {error.strerror}.") from error
    now = datetime.now(UTC)
    if now > found.not_after:
        raise FileProblem(f"{certificate} expired at {_formatted(found.not_after)}; renew it.")
    if now < found.not_before:
        raise FileProblem(
            f"{certificate} is not valid before {_formatted(found.not_before)}; check this machine's clock."
        )
    if not found.has_usable_key:
        raise FileProblem(
            f"{certificate} has a key that gRPC can't use; supported: RSA and the curves P-256 and P-384."
        )
    if client_ca and authorities is not None:
        _check_authorities(client_ca, authorities)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    configuration = grpc.ssl_server_certificate_configuration([(private, chain)], authorities)
    return _Identity(configuration, context, found.not_after.timestamp())


def _why(error: ssl.SSLError, certificate: Path, key: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{key} is not the key of {certificate}; give a certificate and its own key."
    if error.reason == "EE_KEY_TOO_SMALL":
        return f"{certificate} has too short a key; RSA takes 2048 bits or more."
    reason = f" ({error.reason})" if error.reason else ""
    return f"{certificate} and {key} can't be used{reason}; both must be PEM, the key without a password."


def _check_authorities(path: Path, pem: bytes) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=pem.decode("ascii"))
    except (ValueError, ssl.SSLError) as error:
        raise FileProblem(f"{path} holds no certificates of authorities; it must be PEM.") from error


def _formatted(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
