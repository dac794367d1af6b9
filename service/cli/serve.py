"""`dragoman serve`: runs the server with the settings in effect, and prints one line when it is ready."""

import asyncio
import os
import shlex
import signal
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman_client import DEFAULT_SERVER
from service.bundle.manifest_parts import LanguagePair
from service.cli import exit_codes
from service.cli.command_error import CommandError
from service.cli.settings import SettingsCommand
from service.config.watched_files import FileProblem
from service.process.ports import join_address
from service.process.standard_streams import leave

if TYPE_CHECKING:
    from service.config.server_config import ServerConfig
    from service.config.sources import Settings
    from service.server.server import Server

_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # all addresses of the machine -> one of them
# How long a thread may hold the interpreter while others wait; Python's default is 5 ms. With 1 ms, a caller of small
# texts made 60 % more calls beside hostile texts, and no fewer without them.
_SWITCH_SECONDS = 0.001
_LOST = "an engine failed and could not be restarted; see the log."


@click.command(cls=SettingsCommand)
def serve(settings: "Settings") -> None:
    """Serve translations over gRPC until SIGTERM or Ctrl-C; SIGHUP reloads the models in --models.

    Every flag can also be set as a variable, --max-slots as DRAGOMAN_SERVE_MAX_SLOTS, and as a key of the configuration
    file, max_slots. Flags override the environment, which overrides the file. 'dragoman config' shows what is in
    effect, and why.
    """
    # A container's first process ignores signals without a handler; the server installs its own later.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(exit_codes.OK))  # an exception might be caught by an import
    # Imported here: the other commands need neither ONNX Runtime nor Prometheus, and should start quickly.
    from service.engine.runtime.session import DeviceUnavailable
    from service.observe.logs import set_up
    from service.server.optional_parts import TracingUnavailable
    from service.text.glossary import GlossaryError

    config = settings.config
    set_up(config)
    click.echo("", nl=False)  # fail before anything is loaded if standard output can't be written

    try:
        sys.setswitchinterval(_SWITCH_SECONDS)
        server = asyncio.run(_serve(config))
    except GlossaryError as error:
        raise CommandError(str(error), exit_codes.CONFIG) from error
    except (DeviceUnavailable, FileProblem, TracingUnavailable) as error:
        raise CommandError(str(error), exit_codes.CONFIG) from error
    code = exit_codes.SOFTWARE if server.has_failed else exit_codes.OK
    if server.has_threads_left:
        if server.has_failed:
            click.echo(f"dragoman: {_LOST}", err=True)
        leave(code)
    if server.has_failed:
        raise CommandError(_LOST, code)


async def _serve(config: "ServerConfig") -> "Server":
    from service.server.server import Server

    server = Server(config)
    await server.run(_announce)
    return server


async def _announce(server: "Server") -> None:
    """Print the ready line on a thread that nothing waits for: standard output may be a pipe that nobody reads."""
    printed: Future[None] = Future()
    printed.set_running_or_notify_cancel()  # the waiting task may be cancelled; the thread continues
    line = ready_line(server)

    def print_line() -> None:
        try:
            click.echo(line)
        except BaseException as error:
            printed.set_exception(error)
        else:
            printed.set_result(None)

    threading.Thread(target=print_line, name="ready line", daemon=True).start()
    await asyncio.wrap_future(printed)


def ready_line(server: "Server") -> str:
    """Return the line printed when the server is ready, with a command to copy if there is a model."""
    config = server.config
    grpc_address = join_address(config.host, server.port)
    metrics_url = f"http://{join_address(config.metrics_host, server.metrics_port)}/metrics"
    ready = f"Dragoman is ready: gRPC on {grpc_address}, metrics on {metrics_url}"
    if config.admin_port >= 0:
        ready += f", status page on http://{join_address(config.admin_host, server.admin_port)}/"
    ready += "."
    if not server.models:
        return f"{ready} No model is loaded yet; load one with KServe's RepositoryModelLoad."
    command = f"{_program()} translate"
    reachable = join_address(_REACHABLE.get(config.host, config.host), server.port)
    if reachable != DEFAULT_SERVER:
        command += f" --server {reachable}"
    if config.tls_certificate:
        command += " --tls"
    model = server.models[0]
    pair: LanguagePair = model.manifest.first_pair
    sources = {p.source_language_code for m in server.models for p in m.manifest.pairs()}
    if len(sources) > 1:
        command += f" --from {pair.source_language_code}"
    command += f" --to {pair.target_language_code}"
    english = pair.source_language_code.lower().startswith("en")
    text = "Where is the train station?" if english else model.manifest.golden[0].text
    quoted = f'"{text}"' if english else shlex.quote(text)
    return f"{ready} Try: {command} {quoted}"


def _program() -> str:
    """Return the command that runs this program again from the same directory."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{_from_here(Path(sys.executable))} -m service"
    return _from_here(started)


def _from_here(path: Path) -> str:
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else path)
