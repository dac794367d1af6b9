"""Messages from protobuf's JSON, which has the names of the .proto in camelCase or as they are."""

import json
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from service.domain.errors import InvalidRequest, Path, Quoted, quoted
from service.faces.grpc.counts import MAXIMA, check_counts_of_json
from service.faces.json_bounds import check_json

M = TypeVar("M", bound=Message)

_MAX_DIGITS = 64  # more than any number of a message has


def message_from_json(body: bytes, kind: type[M]) -> M:
    """Parse a message.

    Raises:
        InvalidRequest: the body is not such a message, or has too many entries.
    """
    check_json(body)
    try:
        document = json.loads(body, parse_int=_whole_number)
    except (ValueError, RecursionError) as error:
        raise _not_a(kind, error, "body") from error
    return message_of(document, kind)


def message_of(document: Any, kind: type[M], given: str = "body") -> M:
    """Return the message that a document in protobuf's JSON describes; `given` is what an error calls the document.

    Raises:
        InvalidRequest: it describes none, or one with too many entries.
    """
    if not isinstance(document, dict):
        raise _not_a(kind, "expected an object", given)
    if kind in MAXIMA:
        check_counts_of_json(document, kind)  # protobuf is slow for each entry
    fields = {name: field.name for field in kind.DESCRIPTOR.fields for name in (field.name, field.json_name)}
    found: set[str] = set()
    for name in document:
        if name not in fields:
            allowed = ", ".join(field.name for field in kind.DESCRIPTOR.fields)
            raise InvalidRequest("{path} is unknown", Path(quoted(name)[1:-1]), allowed=allowed)
        if fields[name] in found:
            raise InvalidRequest("{path} is given twice", Path(name), advice="give it once")
        found.add(fields[name])
    try:
        return json_format.ParseDict(document, kind())
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise _not_a(kind, error, given) from error


def _whole_number(digits: str) -> int:
    """Read a number, whose time grows with the square of its digits."""
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _not_a(kind: type[Message], why: object, given: str) -> InvalidRequest:
    reason = " ".join(str(why).split())[:200]
    problem = f"the {given} is not a {kind.DESCRIPTOR.name} in JSON: {{reason}}"
    return InvalidRequest(problem, reason=Quoted(repr(reason)))
