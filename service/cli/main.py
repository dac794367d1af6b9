"""The entry point: subcommands, and conversion of every error into one line and an exit code."""

import importlib
import sys
import traceback
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import NoReturn

import click
from click.shell_completion import get_completion_class

import service
from service.bundle.errors import BundleError, one_line
from service.cli.errors import OF_STATUS, CommandError, ExitCode, OutputClosed
from service.cli.streams import use_descriptors
from service.process.memory import memory_shortage
from service.process.ports import PortError
from service.process.standard_streams import leave

# The module of each command, imported when it is needed: the server needs no client, and a client no engine.
MODULES = {
    "bulk": "service.cli.bulk",
    "config": "service.cli.settings",
    "detect": "service.cli.detect",
    "doctor": "service.cli.doctor.command",
    "key": "service.cli.key",
    "models": "service.cli.models",
    "serve": "service.cli.serve",
    "translate": "service.cli.translate",
}
_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_DRAGOMAN_COMPLETE"  # by which the shell asks; click makes the name from that of the program


class _Commands(click.Group):
    """The commands; those of other modules are found by their names."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*MODULES, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in MODULES and cmd_name not in self.commands:
            self.add_command(getattr(importlib.import_module(MODULES[cmd_name]), cmd_name))
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DRAGOMAN"})
@click.version_option(service.__version__, prog_name="dragoman")
def dragoman() -> None:
    """Serve trained Transformers for translation over gRPC, and use such a server.

    Every option can also be set in the environment: DRAGOMAN_<COMMAND>_<OPTION>, such as DRAGOMAN_SERVE_PORT.
    """


@dragoman.command(short_help="Print the script that completes commands.")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and their values in SHELL.

    \b
    bash: source <(dragoman completion bash), in ~/.bashrc
    zsh:  dragoman completion zsh > DIRECTORY/_dragoman, one of those in $fpath
    fish: dragoman completion fish > ~/.config/fish/completions/dragoman.fish
    """
    root = context.find_root()
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root.command, {}, root.info_name or "dragoman", _VARIABLE).source())


def main() -> NoReturn:
    """Run the command line and end the process; never shows a traceback for errors that a user can cause.

    The process ends without the interpreter's finalization: a thread returning from native code then would abort it.
    """
    code: int = ExitCode.SOFTWARE
    try:
        use_descriptors()
        code = run()
    except BaseException:
        traceback.print_exc()
    finally:
        leave(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, that of the process by default; return the exit code."""
    try:
        dragoman.main(args=arguments, prog_name="dragoman", standalone_mode=False)
    except click.ClickException as error:
        with _if_possible():
            error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        _show(getattr(error.__cause__ or error, "__notes__", ()))  # click raises its own from the original
        return ExitCode.INTERRUPTED
    except OutputClosed:
        return ExitCode.BROKEN_PIPE
    except SystemExit as ended:
        return int(ended.code or ExitCode.OK)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        code, line = failure
        _show((line, *getattr(error, "__notes__", ())))
        return code
    return ExitCode.OK


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        with _if_possible():
            click.echo(f"dragoman: {line}", err=True)


def _if_possible() -> AbstractContextManager[None]:
    return suppress(CommandError, OutputClosed)


def failure_of(error: Exception) -> tuple[int, str] | None:
    """Return the exit code and the line to print; `None` for an error that no user can cause."""
    match error:
        case CommandError():
            return error.exit_code, str(error)
        case BundleError():
            return ExitCode.CONFIG, str(error)
        case PortError():
            return ExitCode.PORT, str(error)
    failure = _client_failure(error) if "dragoman_client" in sys.modules else None
    shortage = memory_shortage(error)
    if failure is None and shortage is not None:
        failure = ExitCode.CONFIG, f"memory or threads ran out ({one_line(shortage)}); give the process more."
    return failure


def _client_failure(error: Exception) -> tuple[int, str] | None:
    from dragoman_client import ClientError, HttpPort, NoServer, NotSecure, TlsAdvice
    from service.cli.options import API_KEY, SERVER

    match error:
        case HttpPort():
            return ExitCode.NO_SERVER, str(error)
        case NoServer():
            return ExitCode.NO_SERVER, f"{error} Start one with 'make serve', or name it with --server or in {SERVER}."
        case NotSecure():
            advice = {
                TlsAdvice.TRUST: "name its certificate authority with --tls-ca.",
                TlsAdvice.OMIT_TLS: "connect without --tls.",
                TlsAdvice.USE_TLS: "if it uses TLS, add --tls.",
                TlsAdvice.SHOW_CERTIFICATE: "if it requires a certificate, give one that it trusts with "
                "--tls-certificate and --tls-key.",
            }
            return ExitCode.NOT_SECURE, f"{error.problem}; {advice.get(error.advice, error.advice.value)}"
        case ClientError():
            hint = f" This command reads it from {API_KEY}." if error.code == "UNAUTHENTICATED" else ""
            return OF_STATUS.get(error.code, ExitCode.SOFTWARE), f"{error}{hint}"
    return None
