"""Sources of settings: flags override the environment, which overrides the configuration file, then defaults."""

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.config.server_config import ENVIRONMENT_PREFIX, SETTINGS, Need, ServerConfig, unmet_needs, wrong_settings
from service.domain.errors import quoted, shortened, shown

FILE_VARIABLE = ENVIRONMENT_PREFIX + "CONFIG"


class SettingsError(Exception):
    """Problems with the settings, one per line. `is_in_file`: the configuration file is involved."""

    def __init__(self, problems: list[str], is_in_file: bool) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems
        self.is_in_file = is_in_file


@dataclass(frozen=True, slots=True)
class Given:
    """A value, its setting's name as the user spelled it, and its source."""

    value: Any
    spelled: str
    source: str


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective configuration, and the source of each value."""

    config: ServerConfig
    sources: Mapping[str, str]


def resolve(flags: Mapping[str, Any], file: Path | None) -> Settings:
    """Resolve settings from flags, by setting, this process' environment, a TOML file if there is one, and defaults."""
    from_file, file_problems = _from_file(file) if file else ({}, [])
    from_environment, problems = _from_environment()
    from_flags = {
        name: Given(value, SETTINGS[name].flag, f"flag {SETTINGS[name].flag}") for name, value in flags.items()
    }
    problems += [_wrong(from_flags[name], name) for name in wrong_settings(flags)]
    if problems or file_problems:
        raise SettingsError(file_problems + problems, bool(file_problems))
    defaults = {name: Given(each.default, each.flag, "default") for name, each in SETTINGS.items()}
    given = defaults | from_file | from_environment | from_flags
    values = {name: each.value for name, each in given.items()}
    if unmet := list(unmet_needs(values)):
        concerned = {name for need in unmet for name in (need.setting, need.other)}
        raise SettingsError([_unmet(need, given) for need in unmet], not concerned.isdisjoint(from_file))
    return Settings(ServerConfig(**values), {name: each.source for name, each in given.items()})


def toml_value(value: Any) -> str:
    """Format a setting's value as TOML; no path is an empty text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str | Path | None):
        text = json.dumps(str(value or ""), ensure_ascii=False)
        return "".join(each if each.isprintable() else _escaped(each) for each in text)
    return shown(value)


def _escaped(character: str) -> str:
    """Escape a character as TOML does. Unicode's own line ends would split a message into two lines."""
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _from_file(path: Path) -> tuple[dict[str, Given], list[str]]:
    try:
        document = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        return {}, [f"can't read the configuration file {path}: {error.strerror}."]
    except (ValueError, RecursionError) as error:  # invalid TOML and invalid UTF-8 are ValueErrors
        return {}, [f"the configuration file {path} is not TOML: {error}."]
    unknown = [name for name in document if name not in SETTINGS]
    given = {
        name: Given(value, f"{name} in {path}", f"file {path}") for name, value in document.items() if name in SETTINGS
    }
    wrong = wrong_settings({name: each.value for name, each in given.items()})
    problems = [f"{path} has an unknown key {quoted(name)}{_nearest(name, list(SETTINGS))}" for name in unknown]
    return given, problems + [_wrong(given[name], name) for name in wrong]


def _from_environment() -> tuple[dict[str, Given], list[str]]:
    """Read the variables of settings. Empty ones count as unset; lists have spaces between entries."""
    variables = [name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX) and name != FILE_VARIABLE]
    if not variables:
        return {}, []
    known = [setting.variable for setting in SETTINGS.values()]
    problems = [
        f"the environment has an unknown variable {quoted(name)}{_nearest(name, [*known, FILE_VARIABLE])}"
        for name in variables
        if name not in known
    ]
    texts = {name: text for name, each in SETTINGS.items() if (text := os.environ.get(each.variable))}
    values = {name: SETTINGS[name].value_of(text) for name, text in texts.items()}
    problems += [_wrong(Given(texts[name], SETTINGS[name].variable, ""), name) for name in wrong_settings(values)]
    given = {
        name: Given(value, SETTINGS[name].variable, f"environment {SETTINGS[name].variable}")
        for name, value in values.items()
    }
    return given, problems


def _nearest(name: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else "; 'dragoman config' lists all of them."


def _wrong(given: Given, name: str) -> str:
    return f"{given.spelled} is {shortened(toml_value(given.value))}; give {SETTINGS[name].allowed}."


def _unmet(need: Need, given: Mapping[str, Given]) -> str:
    spelled = given[need.setting].spelled
    line = f"{spelled} needs {_alike(spelled, need.other)} {need.value}".rstrip()
    return f"{line}; {need.otherwise}." if need.otherwise else f"{line} too."


def _alike(spelled: str, name: str) -> str:
    """Return a setting's name in the style of another one's: a flag, a variable or a key."""
    if spelled.startswith("--"):
        return SETTINGS[name].flag
    return SETTINGS[name].variable if spelled.startswith(ENVIRONMENT_PREFIX) else name
