"""`dragoman config`: the settings that `dragoman serve` would have, and the source of each."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.cli.settings import SettingsCommand

if TYPE_CHECKING:
    from service.config.sources import Settings


@click.command(cls=SettingsCommand)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for programs.")
def config(settings: "Settings", as_json: bool) -> None:
    """Print the settings that 'dragoman serve' would use with the same flags, environment and file, and their origins.

    The output is itself a configuration file. Flags override the environment, which overrides the file.
    """
    click.echo(_json(settings) if as_json else render_toml(settings))


def render_toml(settings: "Settings") -> str:
    """Return a configuration file of these settings, one per line, with the value's source as a comment."""
    from service.config.sources import toml_value

    return "\n".join(
        f"{name} = {toml_value(getattr(settings.config, name))}  # {source if source.isprintable() else ascii(source)}"
        for name, source in settings.sources.items()
    )


def _json(settings: "Settings") -> str:
    values = {name: getattr(settings.config, name) for name in settings.sources}
    document = {
        name: {"value": str(value) if isinstance(value, Path) else value, "source": settings.sources[name]}
        for name, value in values.items()
    }
    return json.dumps(document, indent=2, ensure_ascii=False)
