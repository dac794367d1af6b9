"""Values of the exporter's command-line options: names, settings, and checkpoints at the hub."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def usable_name(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """Check the name before the work begins, instead of in the server that loads the bundle."""
    if name is None:
        return None
    from service.bundle.fields import MAX_NAME_BYTES, is_name

    if not is_name(name):
        raise click.BadParameter(
            f"{name[:60]!r} is not a valid name; allowed: 1 to {MAX_NAME_BYTES} printable bytes of UTF-8."
        )
    return name


def parsed_settings(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for text in given:
        name, is_given, value = text.partition("=")
        try:
            if not name or not is_given:
                raise ValueError
            settings[name] = json.loads(value)
        except ValueError:
            raise click.BadParameter(
                f"{text[:60]!r} is not NAME=VALUE with a value in JSON, as in no_repeat_ngram_size=0."
            ) from None
    return settings


class NotFoundError(click.ClickException):
    """A checkpoint can't be downloaded."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        click.echo(f"export: {self.format_message()}", file, err=True)


def found_here(given: str, say: Callable[[str], None]) -> tuple[Path, str | None]:
    """Return the path that was given; or the folder of what was downloaded, and its name at the hub."""
    from export.hub import HubError, download, hub_name

    at_hub = hub_name(given)
    if at_hub is None:
        return Path(given), None
    try:
        return download(at_hub, say), at_hub.model.rpartition("/")[2]
    except HubError as error:
        raise NotFoundError(f"{error}.") from error
