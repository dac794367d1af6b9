"""Errors in the terms of an API whose fields have other names than ours."""

from collections.abc import Mapping

from service.domain.errors import Path, ServiceError, Spelling, dotted

_SOURCE = "source_language_code"  # the only field of ours that an advice names


def spelling_of(names: Mapping[str, str]) -> Spelling:
    """Return how the fields of an API are called; `names` has theirs by ours, where they differ."""

    def spelled(path: Path) -> str:
        return dotted(Path(names.get(str(path[0]), path[0]), *path[1:]))

    return spelled


def spell(error: ServiceError, names: Mapping[str, str], spelling: Spelling | None = None) -> None:
    """Put an error into an API's terms; `spelling` is that of `names` unless it is given."""
    error.spelling = spelling or spelling_of(names)
    error.advice = error.advice.replace(_SOURCE, names.get(_SOURCE, _SOURCE))
