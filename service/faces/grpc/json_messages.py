"""Messages from protobuf's JSON, which has the names of the .proto in camelCase or as they are."""

import json
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from service.domain.errors import InvalidRequest, Path, Quoted, quoted
from service.faces.grpc.counts import MAXIMA, check_counts_of_json
from service.faces.json_text import check_encoding, check_json, check_surrogates, without_mark, wrong_value

M = TypeVar("M", bound=Message)


def message_from_json(body: bytes, kind: type[M]) -> M:
    """Parse a message; raise `InvalidRequest` if the body is not one, or has too many entries."""
    check_json(body)
    body = without_mark(body)
    check_encoding(body)
    try:
        document = json.loads(body, parse_int=_whole_number)
    except (ValueError, RecursionError) as error:
        raise _not_a(kind, error, "body") from error
    check_surrogates(document)
    return message_of(document, kind)


def message_of(document: Any, kind: type[M], given: str = "body") -> M:
    """Return the message of a document in protobuf's JSON, which errors call `given`.

    Raise `InvalidRequest` if it is none, or has too many entries.
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
    _check_kinds(document, kind.DESCRIPTOR)
    try:
        return json_format.ParseDict(document, kind())
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise _not_a(kind, error, given) from error


def _check_kinds(document: dict[str, Any], descriptor: Any) -> None:
    """Check values whose kinds protobuf would report in Python's terms, quoting other values of the body."""
    pending: list[tuple[Path, dict[str, Any], Any]] = [(Path(), document, descriptor)]
    while pending:
        path, within, about = pending.pop()
        fields = {name: field for field in about.fields for name in (field.name, field.json_name)}
        for name, value in within.items():
            field = fields.get(name)
            if field is None or value is None or field.type not in _KINDS:
                continue
            here, message = Path(*path, name), field.message_type
            is_map = message is not None and message.GetOptions().map_entry
            values: list[tuple[Path, Any]] = [(here, value)]
            if field.is_repeated and not is_map:
                if not isinstance(value, list):
                    raise wrong_value(here, value, "a list")
                values = [(Path(*here, index), each) for index, each in enumerate(value)]
            if is_map:
                if not isinstance(value, dict):
                    raise wrong_value(here, value, "an object")
                values = [(Path(*here, quoted(key)[1:-1]), each) for key, each in value.items()]
                field = message.fields_by_name["value"]
            expected, words = _KINDS[field.type]
            for place, each in values:
                if not isinstance(each, expected):
                    raise wrong_value(place, each, words)
                if message is not None and not is_map:
                    pending.append((place, each, message))


_KINDS: dict[int, tuple[Any, str]] = {
    FieldDescriptor.TYPE_STRING: (str, "a string"),
    FieldDescriptor.TYPE_BOOL: (bool, "true or false"),
    FieldDescriptor.TYPE_MESSAGE: (dict, "an object"),
}


def _whole_number(digits: str) -> int:
    """Parse a whole number, which takes time quadratic in its digits."""
    if len(digits) > 64:  # more than any number of a message has
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _not_a(kind: type[Message], why: object, given: str) -> InvalidRequest:
    reason = " ".join(str(why).split())[:200]
    problem = f"the {given} is not a {kind.DESCRIPTOR.name} in JSON: {{reason}}"
    return InvalidRequest(problem, reason=Quoted(repr(reason)))
