"""`dragoman key`: API keys for a server's key file."""

from datetime import UTC, datetime

import click

from service.calls.keys import Quotas, key_lines, new_key

_QUOTA = click.IntRange(1, 10**12)
_TIMES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ")


@click.group()
def key() -> None:
    """Make API keys."""


@key.command()
@click.argument("name")
@click.option("--expires", type=click.DateTime(_TIMES), metavar="DATE", help="Good until then: 2030-01-31, in UTC.")
@click.option("--requests-per-minute", type=_QUOTA, metavar="N", help="Most calls a minute.")
@click.option("--tokens-per-minute", type=_QUOTA, metavar="N", help="Most tokens a minute, read and written.")
@click.option("--concurrent-calls", type=_QUOTA, metavar="N", help="Most calls at the same time.")
def new(*, name: str, expires: datetime | None, **quotas: int | None) -> None:
    """Make a key called NAME.

    The key itself goes to standard error, this once, and is for who will call. To standard output go the lines for the
    server's file, which hold only its hash: dragoman key new NAME >> keys.toml
    """
    made = new_key()
    try:
        lines = key_lines(
            made,
            name,
            expires and expires.replace(tzinfo=UTC),
            Quotas(**{quota: number for quota, number in quotas.items() if number}),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    click.echo(made, err=True)  # first: the hash is useless without it
    click.echo(lines, nl=False)
