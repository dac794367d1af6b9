"""HTML: each stretch between block-level tags is a text, with its inline tags."""

from collections.abc import Iterator

from service.documents.document import Document, DocumentOptions, DocumentText, MimeType, Slot, Spliced, has_words
from service.documents.encodings import decoded
from service.text.markup.lexer import tokens
from service.text.markup.parts import Part, Role
from service.text.markup.structure import parts


def read(data: bytes, _: DocumentOptions) -> Document:
    """Read a page or a fragment; attributes, scripts, styles and what is marked as untranslated stay as they are."""
    source, encode = decoded(data)
    return Spliced(source, slots(source), encode)


def slots(html: str, start: int = 0, first_line: int = 1) -> Iterator[Slot]:
    """Yield the texts of `html`, which is at `start` and `first_line` of its document."""
    run: list[Part] = []
    line, counted = first_line, 0
    for part in (*parts(html, list(tokens(html))), None):
        if part is not None and part.role is not Role.BOUNDARY:
            run.append(part)
            continue
        if any(each.role is Role.TEXT and has_words(html[each.start : each.end]) for each in run):
            begin, end = run[0].start, run[-1].end
            line += html.count("\n", counted, begin)
            counted = begin
            text = DocumentText(html[begin:end], MimeType.HTML, f"line {line}")
            yield Slot(start + begin, start + end, text, _unchanged)
        run = []


def _unchanged(translation: str) -> str:
    return translation
