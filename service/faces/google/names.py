"""Resource names of Google Cloud Translation v3; any project and any location are accepted."""

import re

from service.domain.errors import InvalidRequest, Path

_PARENT = r"projects/[^/]+(?:/locations/[^/]+)?"
_LOCATION = r"projects/[^/]+/locations/[^/]+"
_PARENT_NAME = re.compile(_PARENT)
_MODEL_NAME = re.compile(rf"{_PARENT}/models/(.+)", re.DOTALL)
_GLOSSARY_NAME = re.compile(rf"{_LOCATION}/glossaries/([^/]+)")
_ENTRY_NAME = re.compile(rf"({_LOCATION}/glossaries/[^/]+)/glossaryEntries/([^/]+)")

_DEFAULT_MODEL = "general/nmt"
DETECTION_MODEL = "language-detection/default"


def check_parent(parent: str) -> None:
    """Raise `InvalidRequest` unless `parent` is a project or a location of one."""
    if _PARENT_NAME.fullmatch(parent) is None:
        raise _malformed("parent", parent, "projects/{project}/locations/{location}")


def model_of(model: str) -> str:
    """Return the model's name here, empty for the default model; raise `InvalidRequest` if it is no model's name."""
    name = _model_id(model, "projects/{project}/locations/{location}/models/{model}")
    return "" if name == _DEFAULT_MODEL else name


def detection_model_of(model: str) -> str:
    """Return the name of the language detection model; raise `InvalidRequest` if `model` is another name."""
    return _model_id(model, f"projects/{{project}}/locations/{{location}}/models/{DETECTION_MODEL}") or DETECTION_MODEL


def glossary_of(name: str, field: str) -> str:
    """Return the glossary's name here, of the request's `field`; raise `InvalidRequest` if it is no glossary's."""
    found = _GLOSSARY_NAME.fullmatch(name)
    if found is None:
        raise _malformed(field, name, "projects/{project}/locations/{location}/glossaries/{glossary}")
    return found[1]


def parent_of(name: str) -> str:
    return name.rpartition("/glossaries/")[0]


def glossary_name(parent: str, glossary: str) -> str:
    """Return the full name of a glossary; a `parent` without a location means the location `global`."""
    location = "" if "/locations/" in parent else "/locations/global"
    return f"{parent}{location}/glossaries/{glossary}"


def entry_of(name: str) -> tuple[str, str]:
    """Return the glossary's full name, and the entry's own; raise `InvalidRequest` if `name` is no entry's."""
    found = _ENTRY_NAME.fullmatch(name)
    if found is None:
        form = "projects/{project}/locations/{location}/glossaries/{glossary}/glossaryEntries/{entry}"
        raise _malformed("name", name, form)
    return found[1], found[2]


def entry_name(glossary: str, entry: int) -> str:
    return f"{glossary}/glossaryEntries/{entry}"


def _model_id(model: str, form: str) -> str:
    found = _MODEL_NAME.fullmatch(model)
    if model and found is None:
        raise _malformed("model", model, form)
    return found[1] if found else ""


def _malformed(field: str, value: str, form: str) -> InvalidRequest:
    if not value:
        return InvalidRequest("{path} is empty", Path(field), advice=f"give {form}")
    return InvalidRequest("{path} is {value}", Path(field), value=value, advice=f"expected {form}")
