"""`dragoman serve`: flags and environment into a ServerConfig, the server, and the one line when it is ready."""

import asyncio
import logging
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from service.bundle.manifest import LanguagePair
from service.cli import exit_codes
from service.cli.command_error import CommandError
from service.client import DEFAULT_SERVER
from service.config import DEVICES, LOG_LEVELS, MODEL_CONTROLS, ServerConfig
from service.ports import join_address

if TYPE_CHECKING:
    from service.server import Server

_Command = TypeVar("_Command", bound=Callable[..., object])
_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # all of the machine's addresses -> one of them
_DEFAULTS = ServerConfig()
_PORT = click.IntRange(0, 65535)
_COUNT = click.IntRange(1, 1_000_000)
_SECONDS = click.FloatRange(0.0, 86_400.0)


def _option(flag: str, kind: Any, text: str, **more: Any) -> Callable[[_Command], _Command]:
    default = getattr(_DEFAULTS, flag.removeprefix("--").replace("-", "_"))
    return click.option(flag, type=kind, default=default, show_default=True, help=text, **more)


@click.command()
@_option("--models", click.Path(path_type=Path), "A bundle, or a repository <root>/<model>/<version>/.")
@_option("--glossaries", click.Path(path_type=Path), "A folder of glossaries: products.en-de.tsv, ...")
@_option("--max-versions", _COUNT, "So many of each model's highest versions are served.")
@_option("--reload-seconds", _SECONDS, "Look for new models so often; 0: only on SIGHUP.")
@_option("--model-control", click.Choice(MODEL_CONTROLS), "explicit: load and unload models by KServe's calls only.")
@_option("--load-model", str, "With explicit control: a model to start with, * for all.", multiple=True, metavar="NAME")
@_option("--host", str, "Address to listen on; 0.0.0.0 for all of the machine's.")
@_option("--port", _PORT, "Port for gRPC; 0 takes any free one.")
@_option("--metrics-host", str, "Address for /metrics, /readyz and /livez.")
@_option("--metrics-port", _PORT, "Port for /metrics, /readyz and /livez; 0 takes any free one.")
@_option("--admin-host", str, "Address for the status page and what it can do; keep it where only operators are.")
@_option("--admin-port", click.IntRange(-1, 65535), "Port for the status page; 0 takes any free one, -1: none.")
@_option("--device", click.Choice(DEVICES), "Where to run the model.")
@_option("--num-threads", click.IntRange(0, 1024), "Threads of a model run; 0: one per CPU that the process may use.")
@_option(
    "--max-slots", click.IntRange(0, 65_536), "Hypotheses that are decoded at the same time; 0: as many as pay here."
)
@_option("--max-waiting", _COUNT, "Texts that may wait for a slot before calls are refused.")
@_option("--cache-mib", click.IntRange(0, 1_048_576), "Memory to keep finished translations in, in MiB; 0: none.")
@_option("--default-deadline-seconds", click.FloatRange(0.001, 86_400.0), "Time for a call that sets no deadline.")
@_option("--drain-delay-seconds", _SECONDS, "On a stop signal: time to go on, not ready, until balancers notice.")
@_option("--grace-seconds", _SECONDS, "On a stop signal: time for accepted calls to finish.")
@_option("--max-connection-age-seconds", _SECONDS, "Ask clients to reconnect after this time; 0: never.")
@_option("--log-level", click.Choice(LOG_LEVELS), "What to log to standard error.")
def serve(**settings: Any) -> None:
    """Serve translations over gRPC until SIGTERM or Ctrl-C; SIGHUP has it serve what is in --models by then."""
    # Imported here: the other commands need neither ONNX Runtime nor Prometheus, and should start at once.
    from service.engine.session import DeviceUnavailable
    from service.text.glossary import GlossaryError

    config = ServerConfig(**settings)
    _check_model_control(config)
    logging.basicConfig(
        stream=sys.stderr, level=config.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )

    try:
        server = asyncio.run(_serve(config))
    except GlossaryError as error:
        raise CommandError(str(error), exit_codes.CONFIG) from error
    except DeviceUnavailable as error:
        raise CommandError(str(error), exit_codes.CONFIG) from error
    code = exit_codes.SOFTWARE if server.has_failed else exit_codes.OK
    if server.has_threads_left:
        sys.stdout.flush()
        os._exit(code)
    if server.has_failed:
        raise CommandError("an engine failed while the server ran; the log says why.", code)


def _check_model_control(config: ServerConfig) -> None:
    if config.load_model and config.model_control != "explicit":
        raise click.UsageError("--load-model needs --model-control explicit; without it all models are loaded.")


async def _serve(config: ServerConfig) -> "Server":
    from service.server import Server

    server = Server(config)
    await server.run(lambda ready: click.echo(ready_line(ready)))
    return server


def ready_line(server: "Server") -> str:
    """The one line that says that the server is ready, with a command to copy if there is a model."""
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
    """How the user would call this program again from the same directory."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{_from_here(Path(sys.executable))} -m service"
    return _from_here(started)


def _from_here(path: Path) -> str:
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else path)
