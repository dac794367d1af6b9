"""Bounded types of fields in what callers send."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from service.domain.translation import MAX_TEXTS

MAX_NAME_LENGTH = 1024  # of languages, models, glossaries, formats and the like


@dataclass(frozen=True, slots=True)
class AtMost:
    """The most entries of a list or a dict; a list ends at its first wrong one, where pydantic would report each."""

    entries: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if schema["type"] == "list":
            return {**schema, "max_length": self.entries, "fail_fast": True}
        assert schema["type"] == "dict", f"{source} is neither a list nor a dict"
        return {**schema, "max_length": self.entries}


@dataclass(frozen=True, slots=True)
class Checked:
    """Marks a value without a bound in its type, and says what else bounds it."""

    by: str


Name = Annotated[str, Field(max_length=MAX_NAME_LENGTH)]
Text = Annotated[str, Checked("the characters of a call, which the translator counts")]
Texts = Annotated[list[Text], AtMost(MAX_TEXTS)]
Listed = Annotated[Texts, BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
Anything = Annotated[Any, Checked("the values of a body, and what takes it")]
