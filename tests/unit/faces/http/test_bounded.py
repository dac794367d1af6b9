"""What callers send is bounded: each list, dict and text of each type that a body is checked by."""

import enum
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from service import faces
from service.faces.dragoman import answers
from service.faces.http.bounded import MAX_NAME_LENGTH, AtMost, Checked, Name, Texts

_NUMBERS = (bool, int, float)


def body_types() -> list[type[BaseModel]]:
    """Return all types in the faces, but those of answers."""
    modules = [
        importlib.import_module(each.name) for each in pkgutil.walk_packages(faces.__path__, f"{faces.__name__}.")
    ]
    found = {
        kind
        for module in modules
        if module is not answers
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, BaseModel) and kind.__module__ == module.__name__
    }
    return sorted(found, key=lambda kind: f"{kind.__module__}.{kind.__name__}")


def unbounded(kind: Any, where: str, metadata: tuple[Any, ...] = ()) -> Iterator[str]:
    """Yield what has no bound in a type; models in it are types of their own."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from unbounded(parts[0], where, (*metadata, *parts[1:]))
    elif any(isinstance(each, Checked) for each in metadata):
        return
    elif kind in (list, dict, set, tuple, Any, object) or (
        origin in (list, dict, set, tuple) and not any(isinstance(each, AtMost) for each in metadata)
    ):
        yield f"{where}: {kind}"
    elif kind is str:
        if not any(getattr(each, "max_length", None) for each in flattened(metadata)):
            yield f"{where}: str"
    elif origin in (list, dict, set, tuple, Union, UnionType):
        for part in parts:
            yield from unbounded(part, where)
    elif not (
        kind in (*_NUMBERS, NoneType)
        or origin is Literal
        or (inspect.isclass(kind) and issubclass(kind, BaseModel | enum.Enum))
    ):
        yield f"{where}: {kind} is unknown to this test"


def flattened(metadata: tuple[Any, ...]) -> Iterator[Any]:
    for each in metadata:
        yield from each.metadata if isinstance(each, FieldInfo) else (each,)


def problems(kind: type[BaseModel]) -> list[str]:
    fields = kind.model_fields.items()
    return [
        each
        for name, field in fields
        for each in unbounded(field.annotation, f"{kind.__name__}.{name}", tuple(field.metadata))
    ]


@pytest.mark.parametrize(
    "kind", body_types(), ids=lambda kind: f"{kind.__module__.removeprefix(faces.__name__)}.{kind.__name__}"
)
def test_every_field_of_a_body_is_bounded(kind: type[BaseModel]) -> None:
    assert problems(kind) == []


def test_the_types_of_all_faces_are_found() -> None:
    found = {kind.__module__.removeprefix(f"{faces.__name__}.").partition(".")[0] for kind in body_types()}
    assert found == {"dragoman", "deepl", "google", "kserve", "libretranslate", "openai"}


class Unbounded(BaseModel):
    """The positive control."""

    a: str
    b: list[Name]
    c: dict[Name, int] = {}
    d: Any = None
    e: Annotated[list[str], AtMost(3)]
    f: list[Texts] | None = None
    g: Annotated[dict[Name, Name], AtMost(2)] | None = None  # fine, as the next
    h: Literal["x"] | bool | Annotated[str, Field(max_length=3)] = True


def test_what_is_not_bounded_is_found() -> None:
    assert {each.partition(":")[0][-1] for each in problems(Unbounded)} == set("abcdef")


def test_a_list_ends_at_its_first_wrong_element_and_a_dict_at_its_bound() -> None:
    lists = TypeAdapter(Annotated[list[Name], AtMost(3)])
    assert lists.validate_json(b'["a", "b", "c"]') == ["a", "b", "c"]
    for wrong, kind, number in (
        (b'["a", 1, 2]', "int_type", 1),
        (b'["a", 1, 2, 3, 4]', "string_type", 1),
        (b'["a", "b", "c", "d"]', "too_long", 1),
        (b'["%s"]' % (b"a" * (MAX_NAME_LENGTH + 1)), "string_too_long", 1),
    ):
        with pytest.raises(ValidationError) as raised:
            lists.validate_json(wrong)
        assert raised.value.error_count() == number
        assert raised.value.errors()[0]["type"] in (kind, "string_type")
    with pytest.raises(ValidationError, match="at most 2 items"):
        TypeAdapter(Annotated[dict[str, int], AtMost(2)]).validate_json(b'{"a": 1, "b": 2, "c": 3}')
