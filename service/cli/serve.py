"""`dragoman serve`: runs the server with the settings in effect, and prints one line when it is ready."""

import asyncio
import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.bundle.manifest_parts import LanguagePair
from service.cli.errors import CommandError, ExitCode
from service.cli.settings import SettingsCommand
from service.config.watched_files import FileProblem
from service.process.ports import join_address

if TYPE_CHECKING:
    from service.config.server_config import ServerConfig
    from service.config.sources import Settings
    from service.models.loaded_model import LoadedModel
    from service.server.server import Server

_DEFAULT_SERVER = "127.0.0.1:50051"  # the client's own, where it is told no other
_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # all addresses of the machine -> one of them


@click.command(cls=SettingsCommand, short_help="Serve translations until SIGTERM or Ctrl-C.")
def serve(settings: "Settings") -> None:
    """Serve translations over gRPC until SIGTERM or Ctrl-C; SIGHUP reloads the models in --models.

    Every flag can also be set as a variable, --max-slots as DRAGOMAN_SERVE_MAX_SLOTS, and as a key of the configuration
    file, max_slots. Flags override the environment, which overrides the file. 'dragoman config' shows what is in
    effect, and why.
    """
    # A container's first process ignores signals without a handler; the server installs its own later.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(ExitCode.OK))  # an exception might be caught by an import
    # Imported here: the other commands need neither ONNX Runtime nor Prometheus, and should start quickly.
    from service.observe.logs import set_up

    config = settings.config
    set_up(config)
    click.echo("", nl=False)  # fail before anything is loaded if standard output can't be written
    server = _run(config)
    if server.has_failed:
        raise CommandError("an engine failed and could not be restarted; see the log.", ExitCode.SOFTWARE)


def _run(config: "ServerConfig") -> "Server":
    from service.engine.runtime.session import DeviceUnavailable
    from service.process import event_loop
    from service.server.optional_parts import TracingUnavailable, WrongPlaceholder
    from service.server.server import Server
    from service.text.glossary import GlossaryError

    async def serve() -> Server:
        server = Server(config)
        await server.run(_announce)
        return server

    # How long a thread may hold the interpreter while others wait; Python's default is 5 ms. With 1 ms, a caller of
    # small texts made 60 % more calls beside hostile texts, and no fewer without them (`tests/faults/test_attacks.py`).
    sys.setswitchinterval(0.001)
    try:
        return event_loop.run(serve())
    except (DeviceUnavailable, FileProblem, GlossaryError, TracingUnavailable, WrongPlaceholder) as error:
        raise CommandError(str(error), ExitCode.CONFIG) from error


async def _announce(server: "Server") -> None:
    """Print the ready line on a thread that nothing waits for: standard output may be a pipe that nobody reads."""
    printed: Future[None] = Future()
    printed.set_running_or_notify_cancel()  # the waiting task may be cancelled; the thread continues
    ports = ("port", "http_port", "metrics_port", "admin_port")
    config = replace(server.config, **{name: getattr(server, name) for name in ports})
    line = ready_line(config, server.models, server.num_refused)

    def print_line() -> None:
        try:
            click.echo(line)
        except BaseException as error:
            printed.set_exception(error)
        else:
            printed.set_result(None)

    threading.Thread(target=print_line, name="ready line", daemon=True).start()
    await asyncio.wrap_future(printed)


def ready_line(config: "ServerConfig", models: Sequence["LoadedModel"], num_refused: int = 0) -> str:
    """Return the line printed when the server is ready, with a command to copy; `num_refused` bundles failed."""
    grpc_address = join_address(config.host, config.port)
    metrics_url = f"http://{join_address(config.metrics_host, config.metrics_port)}/metrics"
    ready = f"Dragoman is ready: gRPC on {grpc_address}"
    if config.http_port >= 0:
        scheme = "https" if config.tls_certificate else "http"
        ready += f", HTTP API and translation page on {scheme}://{join_address(config.http_host, config.http_port)}/"
    ready += f", metrics on {metrics_url}"
    if config.admin_port >= 0:
        ready += f", status page on http://{join_address(config.admin_host, config.admin_port)}/"
    ready += "."
    if num_refused:
        ready += f" Not served: {num_refused} bundle{'s' * (num_refused > 1)} in {config.models}; the log says why."
    if not models:
        return f"{ready} No model is loaded yet; load one with KServe's RepositoryModelLoad."
    command = f"{_program()} translate"
    reachable = join_address(_REACHABLE.get(config.host, config.host), config.port)
    if reachable != _DEFAULT_SERVER:
        command += f" --server {reachable}"
    if config.tls_certificate:
        command += " --tls"
    firsts: list[tuple[LoadedModel, LanguagePair]] = [(model, model.manifest.first_pair) for model in models]
    model, pair = next((first for first in firsts if _is_english(first[1])), firsts[0])
    sources = {p.source_language_code for m in models for p in m.manifest.pairs()}
    if len(sources) > 1:
        command += f" --from {pair.source_language_code}"
    command += f" --to {pair.target_language_code}"
    quoted = '"Where is the train station?"' if _is_english(pair) else shlex.quote(model.manifest.golden[0].text)
    return f"{ready} Try: {command} {quoted}"


def _is_english(pair: LanguagePair) -> bool:
    return pair.source_language_code.lower().startswith("en")


def _program() -> str:
    started = Path(sys.argv[0])
    if started.name == "__main__.py" or not started.is_file():  # "-c": no program
        return f"{_from_here(Path(sys.executable))} -m service"
    found = shutil.which(started.name)
    return started.name if found and Path(found).absolute() == started.absolute() else _from_here(started)


def _from_here(path: Path) -> str:
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else path)
