"""Options that several subcommands share."""

import click

from service.client import DEFAULT_SERVER

server_option = click.option(
    "--server", default=DEFAULT_SERVER, show_default=True, metavar="HOST:PORT", help="Server to ask."
)
