"""Front matter, YAML or TOML: the values of named keys, where they are strings."""

import json
import re
from collections.abc import Iterator, Sequence

from service.documents.document import DocumentText, MimeType, Slot, has_words

_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?:.*\n)*?(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)")
_SECTION = re.compile(r"\[{1,2}([^\[\]]+)\]{1,2}")
_KEY = re.compile(r"""(?P<indent>[ ]*(?:-[ ]+)?)["']?(?P<key>[\w.-]+)["']?[ ]*[:=](?:[ \t]+(?P<value>\S.*))?""")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"(?=[ \t]*(?:#|\Z))')
_SINGLE = re.compile(r"'((?:[^']|'')*)'(?=[ \t]*(?:#|\Z))")
_PLAIN = re.compile(r"""(?![\[\]{}&*!|>%@`"'#,]|[-?:](?:\s|\Z))(.*?)(?=[ \t]+\#|[ \t]*\Z)""")
_BLOCK = re.compile(r"[|>][0-9+-]{0,2}(?=[ \t]*(?:#|\Z))")
_NO_STRING = re.compile(r"(?:true|false|yes|no|on|off|null|~|[\d.:eE+-]*|\d{4}-\d{2}.*)", re.IGNORECASE)
_NOT_PLAIN = re.compile(r"[\[\]{}&*!|>%@`\"'#,]|[-?:](?:\s|\Z)|.*(?::(?:\s|\Z)|\s\#)")


def front_matter(source: str, keys: Sequence[str]) -> tuple[int, list[Slot]]:
    """Return where the front matter of a document ends, and the texts of its keys; `hero.title` is a key within one."""
    match = _FRONT_MATTER.match(source)
    if match is None:
        return 0, []
    return match.end(), list(_slots(source, match.end(), match[1] == "+++", set(keys))) if keys else []


def _slots(source: str, end: int, is_toml: bool, keys: set[str]) -> Iterator[Slot]:
    path: list[tuple[int, str]] = []
    section = ""
    starts = _lines(source, end)
    for number, (start, line) in enumerate(starts, start=1):
        if is_toml and (header := _SECTION.fullmatch(line.strip())):
            section = header[1].strip() + "."
            continue
        match = _KEY.fullmatch(line)
        if match is None:
            continue
        indent = len(match["indent"])
        while path and path[-1][0] >= indent:
            path.pop()
        path.append((indent, match["key"]))
        if section + ".".join(key for _, key in path) not in keys or not match["value"]:
            continue
        place = f"line {number}"
        if not is_toml and _BLOCK.match(match["value"]):
            yield from _block(starts, number, indent, match["value"].startswith(">"))
        else:
            yield from _scalar(match["value"], start + match.start("value"), is_toml, place)


def _lines(source: str, end: int) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    start = 0
    for line in source[:end].splitlines(keepends=True):
        found.append((start, line.rstrip("\r\n")))
        start += len(line)
    return found


def _scalar(value: str, start: int, is_toml: bool, place: str) -> Iterator[Slot]:
    if match := _DOUBLE.match(value):
        try:
            text, write = json.loads(match[0]), _double
        except ValueError:  # an escape that JSON lacks
            return
    elif match := _SINGLE.match(value):
        text, write = (match[1], _literal) if is_toml else (match[1].replace("''", "'"), _single)
    elif is_toml or (match := _PLAIN.match(value)) is None or _NO_STRING.fullmatch(match[1]):
        return
    else:
        text, write = match[1], _plain
    if has_words(text):
        yield Slot(start, start + match.end(), DocumentText(text, MimeType.TEXT, place), write)


def _block(lines: Sequence[tuple[int, str]], number: int, indent: int, is_folded: bool) -> Iterator[Slot]:
    """Yield the texts of a block scalar: its paragraphs if its lines are folded, else its lines."""
    run: list[tuple[int, str]] = []
    for index in range(number, len(lines)):
        start, line = lines[index]
        is_in = len(line) - len(line.lstrip(" ")) > indent
        if is_in and line.strip():
            run.append((start + len(line) - len(line.lstrip()), line.strip()))
        if run and (not is_folded or not is_in):
            text = " ".join(each for _, each in run)
            first, last = run[0][0], run[-1][0] + len(run[-1][1])
            if has_words(text):
                yield Slot(first, last, DocumentText(text, MimeType.TEXT, f"line {index + 1}"), _on_one_line)
            run = []
        if not is_in and line.strip():
            return


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _double(text: str) -> str:
    return json.dumps(_on_one_line(text), ensure_ascii=False)


def _single(text: str) -> str:
    return "'" + _on_one_line(text).replace("'", "''") + "'"


def _literal(text: str) -> str:
    return _double(text) if "'" in text else f"'{_on_one_line(text)}'"


def _plain(text: str) -> str:
    text = _on_one_line(text)
    return _double(text) if not text or _NOT_PLAIN.match(text) or _NO_STRING.fullmatch(text) else text
