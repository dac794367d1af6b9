"""Shared parts of both clients: the server's address, TLS, the API key, and when to retry."""

import time
from dataclasses import dataclass
from pathlib import Path

import grpc

from dragoman_client.errors import ClientError, RpcError, client_error
from dragoman_client.targets import Target, target_of

DEFAULT_SERVER = "127.0.0.1:50051"
DEFAULT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS settings for a server; all files are PEM.

    `authorities` are the accepted issuers of the server's certificate, by default those that gRPC trusts.
    `certificate`, with its `key`, is sent if the server requests one.
    """

    authorities: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Return gRPC's credentials.

        Raises:
            OSError: a file can't be read.
        """
        files = (self.authorities, self.key, self.certificate)
        authorities, key, certificate = (path.read_bytes() if path else None for path in files)
        return grpc.ssl_channel_credentials(authorities, key, certificate)


class Connection:
    """The settings of a client; it opens no channel."""

    def __init__(
        self, server: str, timeout_seconds: float, patience_seconds: float, tls: Tls | None, api_key: str
    ) -> None:
        """Read the files of `tls`.

        Raises:
            OSError: a file of `tls` can't be read.
            ValueError: an address without a port, of the web, or several that are not all IPv4 or all IPv6.
        """
        self.server = server
        self.timeout_seconds = timeout_seconds
        self.metadata = (("authorization", f"Bearer {api_key}"),) if api_key else ()
        self.target: Target = target_of(server)
        self.credentials = tls.credentials() if tls else None
        self._patience_seconds = patience_seconds

    def give_up_seconds(self) -> float:
        """Return the time on `time.monotonic()`'s clock until which a call that begins now may be retried."""
        return time.monotonic() + self._patience_seconds

    def error(self, error: RpcError) -> ClientError:
        """Return the client's error for a gRPC error."""
        return client_error(error, self.server, uses_tls=self.credentials is not None)


def pause_seconds(error: ClientError, give_up_seconds: float) -> float:
    """Return how long to wait before retrying the call.

    Raises:
        ClientError: the given error, if the server gave no hint or the wait would exceed the client's patience.
    """
    pause = error.retry_after_seconds
    if pause is None or time.monotonic() + pause > give_up_seconds:
        raise error
    return pause
