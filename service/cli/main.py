"""The entry point: subcommands, and conversion of every error into one line and an exit code."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress

import click

import service
from dragoman_client import ClientError, NoServer, NotSecure, TlsAdvice
from service.bundle.errors import BundleError, one_line
from service.cli import exit_codes
from service.cli.command_error import CommandError, OutputClosed
from service.cli.config import config
from service.cli.detect import detect
from service.cli.key import key
from service.cli.models import models
from service.cli.options import API_KEY
from service.cli.serve import serve
from service.cli.streams import use_descriptors
from service.cli.translate import translate
from service.process.memory import memory_shortage
from service.process.ports import PortError
from service.process.standard_streams import leave

# The client's advice on TLS, with the options of this command line.
_TLS_ADVICE = {
    TlsAdvice.TRUST: "name its certificate authority with --tls-ca.",
    TlsAdvice.OMIT_TLS: "connect without --tls.",
    TlsAdvice.USE_TLS: "if it uses TLS, add --tls.",
    TlsAdvice.SHOW_CERTIFICATE: "if it requires a certificate, give one that it trusts with --tls-certificate and "
    "--tls-key.",
}


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DRAGOMAN"})
@click.version_option(service.__version__, prog_name="dragoman")
def dragoman() -> None:
    """Serve trained Transformers for translation over gRPC, and use such a server.

    Every option can also be set in the environment: DRAGOMAN_<COMMAND>_<OPTION>, such as DRAGOMAN_SERVE_PORT.
    """


dragoman.add_command(serve)
dragoman.add_command(config)
dragoman.add_command(translate)
dragoman.add_command(detect)
dragoman.add_command(models)
dragoman.add_command(key)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; never returns, never shows a traceback for errors that a user can cause."""
    use_descriptors()
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        dragoman.main(args=arguments, prog_name="dragoman", standalone_mode=False)
    except click.ClickException as error:
        with _if_possible():
            error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        _show_notes(error.__cause__ or error)  # click raises its own from the original
        return exit_codes.INTERRUPTED
    except OutputClosed:
        return exit_codes.BROKEN_PIPE
    except CommandError as error:
        return _fail(error, str(error), error.exit_code)
    except NoServer as error:
        return _fail(error, f"{error} Start one with 'make serve', or name it with --server.", exit_codes.NO_SERVER)
    except NotSecure as error:
        advice = _TLS_ADVICE.get(error.advice, error.advice.value)
        return _fail(error, f"{error.problem}; {advice}", exit_codes.NOT_SECURE)
    except ClientError as error:
        hint = f" This command reads it from {API_KEY}." if error.code == "UNAUTHENTICATED" else ""
        return _fail(error, f"{error}{hint}", exit_codes.OF_STATUS.get(error.code, exit_codes.SOFTWARE))
    except BundleError as error:
        return _fail(error, str(error), exit_codes.CONFIG)
    except PortError as error:
        return _fail(error, str(error), exit_codes.PORT)
    except Exception as error:
        shortage = memory_shortage(error)
        if shortage is None:
            raise
        return _fail(
            error,
            f"memory or threads ran out ({one_line(shortage)}); give the process more.",
            exit_codes.CONFIG,
        )
    return exit_codes.OK


def _fail(error: Exception, message: str, code: int) -> int:
    with _if_possible():
        click.echo(f"dragoman: {message}", err=True)
    _show_notes(error)
    if memory_shortage(error) is not None:
        leave(code)  # a normal exit takes memory, too, and might hang
    return code


def _show_notes(error: BaseException) -> None:
    """Print the notes that a command has attached to an error."""
    with _if_possible():
        for note in getattr(error, "__notes__", ()):
            click.echo(f"dragoman: {note}", err=True)


def _if_possible() -> AbstractContextManager[None]:
    """Suppress errors in writing to standard error; the exit code is reported in any case."""
    return suppress(CommandError, OutputClosed)
