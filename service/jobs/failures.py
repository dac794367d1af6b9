"""Why a document has no translation, as JSON: whoever is asked for it may be another process."""

from collections.abc import Iterator
from typing import Any

from service.domain.errors import NotFound, Overloaded, PairNotFound, Path, Public, Quoted, ServiceError

_UNIT = "unit"  # of a quota, on which the status depends in some APIs


def failure_to_json(failure: ServiceError) -> dict[str, Any]:
    """Return an error, in the words that it has now."""
    return {
        "kind": type(failure).__name__,
        "message": str(failure),
        "path": list(failure.path),
        "retry_after_seconds": failure.retry_after_seconds if isinstance(failure, Overloaded) else 0.0,
        _UNIT: failure.given.get(_UNIT),
    }


def failure_from(document: dict[str, Any]) -> ServiceError:
    """Return an error that is of the same kind, about the same field, and says the same.

    Its message may quote a caller's text, so it is not shown to operators, who have seen it with its call.
    """
    kind = _KINDS.get(document["kind"], ServiceError)
    path = Path(*document["path"])
    given: dict[str, Any] = {"message": Quoted(document["message"])}
    if document[_UNIT]:
        given[_UNIT] = Public(document[_UNIT])
    if issubclass(kind, Overloaded):
        return kind("{message}", document["retry_after_seconds"], **given)
    if issubclass(kind, NotFound) and not issubclass(kind, PairNotFound):
        return kind("{message}", **given)
    return kind("{message}", path, **given)


def _kinds(kind: type[ServiceError]) -> Iterator[type[ServiceError]]:
    yield kind
    for each in kind.__subclasses__():
        if each.__module__ == ServiceError.__module__:  # not what HTTP itself refuses, which has no document
            yield from _kinds(each)


_KINDS = {kind.__name__: kind for kind in _kinds(ServiceError)}
