"""Front matter, YAML or TOML: the values of named keys, where they are strings."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence

from service.documents.document import MimeType, Slot
from service.documents.errors import DocumentError
from service.documents.lines import lines
from service.documents.values import value_slots

_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?:.*\n)*?(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)")
# Lines of TOML (https://toml.io/en/v1.0.0): strings with escapes that JSON has, too, and literal ones.
_SECTION = re.compile(r"[ \t]*\[{1,2}([^\[\]]+)\]{1,2}[ \t]*")
_PAIR = re.compile(
    r"""[ \t]*["']?(?P<key>[\w.-]+)["']?[ \t]*=[ \t]*
    (?P<value>"(?:[^"\\]|\\(?:["\\bfnrt]|u[0-9A-Fa-f]{4}))*"|'[^']*')[ \t]*(?:\#.*)?""",
    re.VERBOSE,
)


def front_matter(source: str, keys: Sequence[str]) -> tuple[int, list[Slot], list[str]]:
    """Return the end of front matter, the texts of its keys, and notes; `hero.title` is a nested key."""
    match = _FRONT_MATTER.match(source)
    if match is None:
        return 0, [], []
    notes: list[str] = []
    slots: list[Slot] = []
    if keys and match[1] == "+++":
        slots = list(_of_toml(match[0], keys))
    elif keys:
        try:
            slots = list(_of_yaml(match[0], keys))
        except DocumentError as error:
            notes.append(f"Front matter was left as it is: {error}")
    return match.end(), slots, notes


def _of_yaml(source: str, keys: Collection[str]) -> Iterator[Slot]:
    from service.documents.yaml_source import Reader  # slow to import, and few documents need it

    def values(
        path: Sequence[str], start: int, end: int, value: str, place: str, write: Callable[[str], str], kind: MimeType
    ) -> Iterator[Slot]:
        if ".".join(path) in keys:
            yield from value_slots(start, end, value, place, write, kind)

    return Reader(source, values).slots()


def _of_toml(source: str, keys: Collection[str]) -> Iterator[Slot]:
    section = ""
    for line in lines(source):
        if header := _SECTION.fullmatch(line.text):
            section = header[1].strip() + "."
        elif (match := _PAIR.fullmatch(line.text)) and section + match["key"] in keys:
            is_literal = match["value"].startswith("'")
            value = match["value"][1:-1] if is_literal else json.loads(match["value"])
            start, end = match.span("value")
            write = _literal if is_literal else _basic
            yield from value_slots(line.start + start, line.start + end, value, f"line {line.number}", write)


def _basic(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _literal(text: str) -> str:
    return f"'{text}'" if text.isprintable() and "'" not in text else _basic(text)
