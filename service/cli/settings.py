"""Commands that take the server's settings, by a flag for each or the configuration file; `dragoman config`."""

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from service.config.server_config import Setting
    from service.config.sources import Settings

# The settings modules import pydantic, so they are imported only when such a command runs: the others should start
# quickly.


class SettingsCommand(click.Command):
    """A command that takes every setting as a flag, in addition to its own parameters."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *_options()]

    def invoke(self, ctx: click.Context) -> Any:
        given = {option.name: ctx.params.pop(option.name) for option in _options() if option.name}
        file = given.pop("config")
        is_flag = click.core.ParameterSource.COMMANDLINE
        flags = {name: value for name, value in given.items() if ctx.get_parameter_source(name) is is_flag}
        ctx.params["settings"] = _resolved(flags, file)
        return super().invoke(ctx)


def _resolved(flags: dict[str, Any], file: Path | None) -> "Settings":
    from service.config.sources import SettingsError, resolve

    try:
        return resolve(flags, file)
    except SettingsError as error:
        refusal = CommandError(error.problems[0], ExitCode.CONFIG if error.is_in_file else ExitCode.USAGE)
        for problem in error.problems[1:]:
            refusal.add_note(problem)
        raise refusal from None


@functools.cache
def _options() -> tuple[click.Option, ...]:
    from service.config.server_config import SETTINGS
    from service.config.sources import FILE_VARIABLE

    file = click.Option(
        ["--config"],
        type=click.Path(path_type=Path),
        metavar="FILE",
        envvar=FILE_VARIABLE,
        show_envvar=True,
        help="A TOML file of settings, with keys named like the flags: max_slots = 8.",
    )
    return (file, *(_option(setting) for setting in SETTINGS.values()))


def _option(setting: "Setting") -> click.Option:
    kind, is_list = setting.kind, setting.kind is tuple
    return click.Option(
        [f"{setting.flag}/--no-{setting.flag.removeprefix('--')}" if kind is bool else setting.flag],
        type=_type(setting),
        multiple=is_list,
        metavar="PATH" if kind is Path else "NAME" if is_list else None,
        default=setting.default,
        show_default=True,
        allow_from_autoenv=False,  # `service.config.sources` reads it
        help=setting.meaning,
    )


def _type(setting: "Setting") -> "click.ParamType[Any]":
    if setting.choices:
        return click.Choice(setting.choices)
    if setting.kind is bool:
        return click.BOOL
    if setting.kind is Path:
        return click.Path()  # shells complete it; whether it can be used is for the server to say
    if setting.kind is int and setting.least is not None and setting.most is not None:
        return click.IntRange(int(setting.least), int(setting.most))
    if setting.kind is float:
        return click.FloatRange(setting.least, setting.most)
    return click.STRING


@click.command(cls=SettingsCommand, short_help="Print the settings that a server would use.")
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
