"""Settings from environment variables."""

import os
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError, create_model, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.config.server_config import SETTINGS, ServerConfig


class _Environment(BaseSettings):
    """Converts text to the types of settings. Empty variables count as unset; lists have spaces between entries."""

    model_config = SettingsConfigDict(
        alias_generator=lambda name: SETTINGS[name].variable,
        case_sensitive=True,
        enable_decoding=False,
        env_ignore_empty=True,
        extra="forbid",
    )

    @field_validator(*(n for n, each in SETTINGS.items() if each.kind is tuple), mode="before", check_fields=False)
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(value.split()) if isinstance(value, str) else value


def read_environment() -> tuple[dict[str, Any], dict[str, str]]:
    """Return values by setting, and the text of variables that are invalid by setting."""
    fields: Mapping[str, Any] = ServerConfig.__pydantic_fields__  # type: ignore[attr-defined]
    definitions: dict[str, Any] = {name: (field.annotation, field) for name, field in fields.items()}
    model = create_model("Environment", __base__=_Environment, **definitions)
    try:
        return model().model_dump(exclude_unset=True), {}
    except ValidationError as error:
        wrong = {str(problem["loc"][0]) for problem in error.errors()}
        return {}, {name: os.environ[each.variable] for name, each in SETTINGS.items() if each.variable in wrong}
