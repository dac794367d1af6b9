"""`dragoman key`: API keys for a server's key file."""

from datetime import UTC, datetime

import click

from service.calls.keys import Quotas, key_lines, new_key

_QUOTA = click.IntRange(1, 10**12)
_TIMES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ")


@click.group()
def key() -> None:
    """Create API keys."""


@key.command()
@click.argument("name")
@click.option("--expires", type=click.DateTime(_TIMES), metavar="DATE", help="Expiry date in UTC: 2030-01-31.")
@click.option("--requests-per-minute", type=_QUOTA, metavar="N", help="Maximum calls per minute.")
@click.option(
    "--tokens-per-minute", type=_QUOTA, metavar="N", help="Maximum tokens per minute, of sources and translations."
)
@click.option("--concurrent-calls", type=_QUOTA, metavar="N", help="Maximum calls at the same time.")
@click.option("--model", "models", multiple=True, metavar="NAME", help="Model that the key may use; may be repeated.")
@click.option(
    "--glossary", "glossaries", multiple=True, metavar="NAME", help="Glossary that the key may use; may be repeated."
)
def new(
    *,
    name: str,
    expires: datetime | None,
    models: tuple[str, ...],
    glossaries: tuple[str, ...],
    **quotas: int | None,
) -> None:
    """Create a key called NAME.

    The key itself is printed to standard error, only this once; give it to the caller. The lines for the server's file,
    which contain only its hash, are printed to standard output: dragoman key new NAME >> keys.toml
    """
    made = new_key()
    try:
        lines = key_lines(
            made,
            name,
            expires and expires.replace(tzinfo=UTC),
            Quotas(**{quota: number for quota, number in quotas.items() if number}),
            {"models": models, "glossaries": glossaries},
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    click.echo(made, err=True)  # first: the hash is useless without it
    click.echo(lines, nl=False)
