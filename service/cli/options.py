"""Options shared by several subcommands: the server, and how to connect to it."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from dragoman_client import DEFAULT_SERVER, AsyncClient, Client, Tls
from service.cli.errors import CommandError, ExitCode

# Not an option: every user of the machine can read the command lines of others.
API_KEY = "DRAGOMAN_API_KEY"
SERVER = "DRAGOMAN_SERVER"  # of every command; a command's own variable, DRAGOMAN_<COMMAND>_SERVER, comes first

_FILE = click.Path(path_type=Path, dir_okay=False)
Command = TypeVar("Command", bound=Callable[..., Any])
AnyClient = TypeVar("AnyClient", Client, AsyncClient)


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of a server, and the credentials for both sides."""

    server: str
    tls: Tls | None
    api_key: str

    def client(self, timeout_seconds: float = 60.0) -> Client:
        """Return a client that connects at its first call."""
        return self._opened(Client, timeout_seconds)

    def async_client(self, timeout_seconds: float) -> AsyncClient:
        return self._opened(AsyncClient, timeout_seconds)

    def _opened(self, kind: Callable[..., AnyClient], timeout_seconds: float) -> AnyClient:
        try:
            return kind(self.server, timeout_seconds, tls=self.tls, api_key=self.api_key)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="'--server'") from error
        except OSError as error:
            raise CommandError(f"can't read {error.filename}: {error.strerror}.", ExitCode.NO_INPUT) from error


_SERVER = click.option(
    "--server",
    default=lambda: os.environ.get(SERVER) or DEFAULT_SERVER,
    show_default=f"{SERVER}, or {DEFAULT_SERVER}",
    metavar="HOST:PORT",
    help="Server to use. Several, IP:PORT,IP:PORT or dns:///NAME:PORT, are used in turn while they are healthy.",
)
_OPTIONAL_SERVER = click.option(
    "--server",
    default="",
    metavar="HOST:PORT",
    help="Translate with this server, or several as in dragoman translate, instead of models in this process.",
)
_CREDENTIALS = (
    click.option("--tls", is_flag=True, help="Use TLS; implied by the next options."),
    click.option(
        "--tls-ca", type=_FILE, metavar="FILE", help="Trust servers with a certificate from these authorities."
    ),
    click.option(
        "--tls-certificate", type=_FILE, metavar="FILE", help="Client certificate, for servers that require one."
    ),
    click.option("--tls-key", type=_FILE, metavar="FILE", help="The certificate's private key."),
)


def timeout_option(help_text: str) -> Callable[[Command], Command]:
    kind = click.FloatRange(0.001, 86_400)
    return click.option("--timeout-seconds", type=kind, default=60.0, show_default=True, help=help_text)


def connection_options(command: Command) -> Command:
    """Add these options to a command, which receives `connection: Connection` instead. The API key is in `API_KEY`."""
    return _with_connection(command, _SERVER)


def optional_connection_options(command: Command) -> Command:
    """Add these options to a command that needs no server: without `--server`, `connection` is `None`."""
    return _with_connection(command, _OPTIONAL_SERVER)


def _with_connection(command: Command, server_option: Callable[[Any], Any]) -> Command:
    @functools.wraps(command)
    def with_connection(
        *,
        server: str,
        tls: bool,
        tls_ca: Path | None,
        tls_certificate: Path | None,
        tls_key: Path | None,
        **others: Any,
    ) -> Any:
        if (tls_certificate is None) != (tls_key is None):
            raise click.UsageError("--tls-certificate and --tls-key must be given together.")
        is_secure = tls or tls_ca is not None or tls_certificate is not None
        api_key = os.environ.get(API_KEY, "").strip()
        if not (api_key.isascii() and api_key.isprintable()):
            raise click.UsageError(f"{API_KEY} is not an API key; keys consist of letters, digits, '_' and '-'.")
        credentials = Tls(tls_ca, tls_certificate, tls_key) if is_secure else None
        connection = Connection(server, credentials, api_key) if server else None
        return command(connection=connection, **others)

    for option in reversed((server_option, *_CREDENTIALS)):
        with_connection = option(with_connection)
    return with_connection  # type: ignore[return-value]
