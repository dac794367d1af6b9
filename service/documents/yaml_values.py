"""YAML's values by position: scalars, and collections in brackets, which a line may begin."""

import functools
import re
from collections.abc import Callable, Generator, Iterator, Sequence

from service.documents import yaml_scalars
from service.documents.document import MimeType, Slot
from service.documents.errors import DocumentError
from service.documents.lines import Lines
from service.documents.values import EscapeStyle, value_slot

MAX_DEPTH = 100
START = r"[^\s\-?:,\[\]{}#&*!|>'\"%@`]"
"""The first sign of a plain scalar, but for signs that only begin one before others."""
_FLOW_PLAIN = re.compile(rf"(?:{START}|[-:](?=[^\s,\[\]{{}}]))(?:[^:#\n\r,\[\]{{}}]++|:(?=[^\s,\[\]{{}}])|(?<=\S)#)*+")
_STRING = re.compile(r""" "(?:[^"\\]++|\\.)*+"|'(?:[^']++|'')*+'""".strip(), re.DOTALL)
_PROPERTY = re.compile(r"([&!][^\s,\[\]{}]*+)(?:[ \t]++|(?=[\r\n]|\Z))")
REST = re.compile(r"(?:[ \t]++#[^\n]*|[ \t]*+)\r?(?=\n|\Z)")
_FLOW_SPACE = re.compile(r"(?:[ \t\r\n]++|(?<=[ \t\n])#[^\n]*)*+")
_ALIAS = re.compile(r"\*[^\s,\[\]{}]++")
_STRING_TAGS = ("!", "!!str")


class ValueReader:
    """A document; positions are those of its text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = Lines(source)
        self.style = EscapeStyle(source)

    def slot(
        self, start: int, end: int, names: Sequence[str], *, is_text: bool, is_flow: bool = False
    ) -> Iterator[Slot]:
        """Yield the slot of a scalar below `names`; its style shows in its signs. It has none without `is_text`."""
        raw = self.source[start:end]
        content = raw[1:-1]
        write: Callable[[str], str]
        if raw.startswith('"'):
            value = yaml_scalars.double_quoted(content, self.lines.place(start))
            write = functools.partial(yaml_scalars.write_double, self.style)
        elif raw.startswith("'"):
            value = yaml_scalars.folded(content).replace("''", "'")
            write = functools.partial(yaml_scalars.write_single, self.style)
        else:
            value = yaml_scalars.folded(raw)
            is_text &= yaml_scalars.is_string(value)
            write = functools.partial(yaml_scalars.write_plain, self.style, is_flow)
        if is_text:
            yield from self.named(start, end, value, write, names)

    def named(
        self, start: int, end: int, value: str, write: Callable[[str], str], names: Sequence[str]
    ) -> Iterator[Slot]:
        """Yield the slot of a value below `names`, unless it stays by convention."""
        if "formats" in names or ("number" in names and names[-1] == "format"):
            return
        is_html = bool(names) and (names[-1] == "html" or names[-1].endswith("_html"))
        kind = MimeType.HTML if is_html else MimeType.TEXT
        if slot := value_slot(start, end, value, self.lines.place(start), write, kind):
            yield slot

    def flow(self, position: int, names: Sequence[str]) -> Generator[Slot, None, int]:
        """Yield the texts of a flow collection, and return its end."""
        start = position
        path: list[tuple[str, str | None]] = []  # the signs that end what is open, and the keys there
        is_after = False  # a value, so a comma or an end comes next
        is_text = True
        while position < len(self.source):
            position = _FLOW_SPACE.match(self.source, position).end()  # type: ignore[union-attr]  # it matches nothing
            sign = self.source[position : position + 1]
            if sign and sign in "[{" and not is_after:
                if len(path) == MAX_DEPTH:
                    raise self.error(position, f"it is nested more than {MAX_DEPTH} deep")
                path.append(("]" if sign == "[" else "}", None))
                position, is_text = position + 1, True
            elif path and sign == path[-1][0]:
                path.pop()
                position, is_after = position + 1, True
                if not path:
                    return position
            elif sign == ",":
                position, is_after, is_text = position + 1, False, True
                path[-1] = path[-1][0], None
            elif is_after or not sign:
                break
            elif sign == "*":
                position, is_after = self.alias(position), True
            elif sign in "&!":
                found, is_text = self.after_properties(position)
                if found == position:
                    break
                position = found
            else:
                plain = None if sign in "\"'" else _FLOW_PLAIN.match(self.source, position)
                if sign not in "\"'" and plain is None:
                    break
                end = plain.end() if plain else self.quoted(position)
                end = position + len(self.source[position:end].rstrip(" \t"))
                colon = end + self.indentation(end, " \t")
                if self.source.startswith(":", colon) and (
                    not plain or self.source[colon + 1 : colon + 2] in (*" \t\r\n,[]{}", "")
                ):
                    path[-1] = path[-1][0], self.source[position:end].strip("\"'")
                    position = colon + 1
                    continue
                keys = [key for _, key in path if key is not None]
                is_key = path[-1] == ("}", None)  # without a value
                yield from self.slot(position, end, [*names, *keys], is_text=is_text and not is_key, is_flow=True)
                position, is_after = end, True
        raise self.error(min(position, len(self.source)) or start, "a list or mapping in brackets is not read")

    def after_properties(self, position: int) -> tuple[int, bool]:
        """Return where the content begins behind anchors and tags, and whether its tag is that of a string."""
        is_text = True
        while found := _PROPERTY.match(self.source, position):
            is_text &= found[1].startswith("&") or found[1] in _STRING_TAGS
            position = found.end()
        return position, is_text

    def alias(self, position: int) -> int:
        """Return where an alias ends."""
        if (found := _ALIAS.match(self.source, position)) is None:
            raise self.error(position, "an alias has no name")
        return found.end()

    def quoted(self, position: int) -> int:
        """Return where a scalar in quotes ends."""
        found = _STRING.match(self.source, position)
        if found is None:
            raise self.error(position, "a quotation has no end")
        if "\n" in found[0] and re.search(r"\n(?:---|\.\.\.)(?=[ \t\r\n])", found[0]):
            raise self.error(position, "a document ends within a quotation")
        return found.end()

    def indentation(self, position: int, signs: str = " ") -> int:
        """Return the number of spaces from a position on."""
        end = position
        while self.source[end : end + 1] and self.source[end] in signs:
            end += 1
        return end - position

    def next_line(self, position: int) -> int:
        """Return where the line after a position begins."""
        end = self.source.find("\n", position)
        return end + 1 if end >= 0 else len(self.source)

    def ended(self, position: int) -> int:
        """Return where the next line begins if nothing but a comment is left of this one."""
        if not REST.match(self.source, position):
            raise self.error(position, "something follows what is complete")
        return self.next_line(position)

    def error(self, position: int, problem: str) -> DocumentError:
        return DocumentError(f"{problem}.", self.lines.place(position))
