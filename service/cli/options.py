"""Options that several subcommands share."""

import click

from service.client import DEFAULT_SERVER
from service.connection import connection


def _checked(_context: click.Context, _parameter: click.Parameter, server: str) -> str:
    try:
        connection(server)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return server


server_option = click.option(
    "--server",
    default=DEFAULT_SERVER,
    show_default=True,
    metavar="HOST:PORT",
    callback=_checked,
    help="Server to ask. Several, IP:PORT,IP:PORT or dns:///NAME:PORT, are asked in turn while they are healthy.",
)
