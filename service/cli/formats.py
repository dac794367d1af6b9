"""Input formats: the position of the text in a line, and writing its translation back there."""

import json
import re
from dataclasses import dataclass
from typing import Protocol

from service.cli.command_error import CommandError
from service.cli.exit_codes import ExitCode
from service.cli.lines import Line
from service.domain.errors import listed

# Numbers are kept as written: they may exceed the range of Python's.
_JSON = json.JSONDecoder(parse_int=str, parse_float=str)
_BETWEEN_JSON_TOKENS = re.compile(r"[ \t\r\n:,]*")
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_QUOTED = re.compile(r'"(?:[^"]|"")*+"')
_TSV_CELL = re.compile(rf"(?:^|\t)({_QUOTED.pattern}(?=\t|\Z)|[^\t]*)")
_LINE_FEEDS = str.maketrans("\n", " ")
_TABS_AND_LINE_FEEDS = str.maketrans("\t\n", "  ")


@dataclass(frozen=True, slots=True)
class Record:
    """A text to translate, from the line of this number: `raw` is the text as written there.

    `before` and `after` surround the translation in the output, which is in quotation marks if the text was.
    """

    number: int
    text: str
    before: str
    raw: str
    after: str
    is_quoted: bool = False


class Format(Protocol):
    """Position and encoding of texts in lines."""

    def record(self, line: Line) -> Record:
        """Return the text to translate in a line."""

    def written(self, translation: str) -> str:
        """Encode a translation in this format, without characters that would end the record."""


def render(record: Record, translation: str, form: Format) -> str:
    """Return the record with its translation; an unchanged text stays as it was written."""
    if translation == record.text:
        return record.before + record.raw + record.after
    written = form.written(translation)
    if record.is_quoted:
        written = '"' + written.replace('"', '""') + '"'
    return record.before + written + record.after


@dataclass(frozen=True, slots=True)
class Documents:
    """Each text as a whole, whatever its content: HTML, and texts from the command line."""

    def record(self, line: Line) -> Record:
        return Record(line.number, line.text, "", line.text, line.ending)

    def written(self, translation: str) -> str:
        return translation


@dataclass(frozen=True, slots=True)
class TextLines:
    """One text per line."""

    def record(self, line: Line) -> Record:
        return Record(line.number, line.text, "", line.text, line.ending)

    def written(self, translation: str) -> str:
        return translation.translate(_LINE_FEEDS)


@dataclass(frozen=True, slots=True)
class TsvColumn:
    """A column of tab-separated values, from 1; its translation replaces it, or `appends` a column at the end.

    A value that begins and ends with a quotation mark is one as spreadsheets write it, which may have tabs and doubled
    quotation marks; elsewhere quotes have no special meaning. Empty lines stay empty.
    """

    column: int
    appends: bool = False

    def record(self, line: Line) -> Record:
        if not line.text:
            return Record(line.number, "", "", "", line.ending)
        cells = _TSV_CELL.findall(line.text)
        if len(cells) < self.column:
            raise CommandError(
                f"line {line.number} has {len(cells)} columns, separated by tabs; --column is {self.column}.",
                ExitCode.DATA,
            )
        raw, following = cells[self.column - 1], cells[self.column :]
        is_quoted = _QUOTED.fullmatch(raw) is not None
        text = raw[1:-1].replace('""', '"') if is_quoted else raw
        if self.appends:
            return Record(line.number, text, line.text + "\t", raw, line.ending, is_quoted)
        before = "".join(cell + "\t" for cell in cells[: self.column - 1])
        after = "".join("\t" + cell for cell in following) + line.ending
        return Record(line.number, text, before, raw, after, is_quoted)

    def written(self, translation: str) -> str:
        return translation.translate(_TABS_AND_LINE_FEEDS)


@dataclass(frozen=True, slots=True)
class JsonField:
    """A string in the JSON object of each line; its translation becomes `target_field`, which may be the same.

    The rest of the line is kept byte for byte. Blank lines are kept.
    """

    field: str
    target_field: str

    def record(self, line: Line) -> Record:
        if not line.text.strip():
            return Record(line.number, "", line.text, "", line.ending)
        source = line.text
        try:
            document = _JSON.decode(source)
        except (ValueError, RecursionError) as error:
            raise CommandError(f"line {line.number} is not JSON: {error}.", ExitCode.DATA) from None
        if not isinstance(document, dict):
            raise CommandError(
                f"line {line.number} is JSON, but not an object; give one in braces per line.", ExitCode.DATA
            )
        spans = _spans_of_values(source)
        if self.field not in spans:
            names = listed(map(repr, spans))
            raise CommandError(
                f"line {line.number} has no field {self.field!r}; its fields are {names}.", ExitCode.DATA
            )
        start, end = spans[self.field]
        raw, text = source[start:end], document[self.field]
        if not raw.startswith('"'):
            raise CommandError(
                f"line {line.number} has {raw:.40} in field {self.field!r}; it must be a string.", ExitCode.DATA
            )
        if _HALF_A_PAIR.search(text):
            raise CommandError(
                f"line {line.number} has half a surrogate pair in field {self.field!r}; write both halves.",
                ExitCode.DATA,
            )
        if self.target_field in spans:
            start, end = spans[self.target_field]
            return Record(line.number, text, source[:start], raw, source[end:] + line.ending)
        end = max(end for _, end in spans.values())
        before = f"{source[:end]}, {json.dumps(self.target_field, ensure_ascii=False)}: "
        return Record(line.number, text, before, raw, source[end:] + line.ending)

    def written(self, translation: str) -> str:
        return json.dumps(translation, ensure_ascii=False)


def _spans_of_values(source: str) -> dict[str, tuple[int, int]]:
    """Return the span of each value of a valid JSON object, by key; for duplicate keys, that of the last."""
    spans: dict[str, tuple[int, int]] = {}
    start = _next_token(source, source.index("{") + 1)
    while source[start] != "}":
        key, end = _JSON.raw_decode(source, start)
        start = _next_token(source, end)
        _, end = _JSON.raw_decode(source, start)
        spans[key] = start, end
        start = _next_token(source, end)
    return spans


def _next_token(source: str, start: int) -> int:
    between = _BETWEEN_JSON_TOKENS.match(source, start)
    assert between is not None  # it also matches the empty string
    return between.end()
