"""Qt Linguist's `.ts` (https://doc.qt.io/qt-6/linguist-ts-file-format.html): sources are translated into translations.

A message without a translation gets one, unfinished only if the call says that a person should check it. An unfinished
one gets a new translation and stays unfinished, as in PO. With numerus forms, `%n file(s)` is read as `%n file` for the
first form, else as `%n files`; with three or more, the message stays unfinished.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence

from service.documents.arguments import format_of
from service.documents.document import Document, DocumentOptions, Doubt, Edit, Spliced, Unit, notes_on_left
from service.documents.errors import DocumentError
from service.documents.inline import Kind, Piece
from service.documents.plural_categories import MAX_FORMS, forms_of
from service.documents.program_strings import ProgramString
from service.documents.xml_source import Element, XmlSource, element_with, read_xml, tag_with, writer_of
from service.text.languages import canonical, primary

_PLURAL = re.compile(r"(?<=\w\w)\(([a-z]{1,3})\)(?!\w)")  # the ending of file(s)
_AS_IT_IS, _ONE, _MANY = r"(\1)", "", r"\1"
_QT = format_of(("qt-format",))


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read messages in the encoding that the file says; its language becomes `options.target`."""
    source, encode = read_xml(data)
    reader = _Reader(source, options)
    units = list(reader.units())
    language = canonical(source.root.attributes.get("sourcelanguage", "")) if source.root else ""
    return Spliced(source.raw, units, encode, reader.notes, reader.language_edits(), language)


class _Reader:
    def __init__(self, source: XmlSource, options: DocumentOptions) -> None:
        self._source = source
        self._options = options
        self._num_kept = 0
        self._num_left = 0

    @property
    def notes(self) -> list[str]:
        names = "message of an unusual form or length", "messages of unusual forms or lengths"
        return notes_on_left(self._num_left, *names)

    def units(self) -> Iterator[Unit]:
        for message in self._source.elements_of("TS", "message"):
            source, target = message.first("source"), message.first("translation")
            kind = target.attributes.get("type", "") if target else ""
            if source is None or target is None or kind in ("obsolete", "vanished"):
                continue
            forms, endings = [target], [_AS_IT_IS]
            if message.attributes.get("numerus") == "yes":
                forms = [each for each in target.elements if each.name == "numerusform"]
                endings = forms_of(_ONE, _MANY, len(forms))
            has_text = bool(forms) and all(form.text().strip() for form in forms)
            if has_text and kind != "unfinished" and not self._options.has_all:
                self._num_kept += 1
            elif not 0 < len(forms) <= MAX_FORMS or target.first("lengthvariant") is not None:
                self._num_left += 1
            else:
                is_unfinished = len(forms) > 2 or (has_text and kind == "unfinished")
                yield from self._unit(source, target, forms, endings, is_unfinished=is_unfinished)

    def language_edits(self) -> Iterator[Edit]:
        """Yield what makes the target the language of the file, after its messages have been read."""
        root = self._source.root
        if root is None or not self._options.target:
            return
        found, target = root.attributes.get("language", ""), canonical(self._options.target)
        if primary(canonical(found)) == primary(target):
            return
        if found and self._num_kept:
            problem = f"its language is {found[:40]!r}, with translations, and the new ones are in {target!r}"
            place = self._source.place(root.start)
            raise DocumentError(f"{problem}; remove the old ones, or have all translated again.", place)
        tag = self._source.raw[root.start : root.inner]
        yield Edit(root.start, root.inner, tag_with(tag, {"language": target.replace("-", "_")}))

    def _unit(
        self, source: Element, target: Element, forms: Sequence[Element], endings: Sequence[str], *, is_unfinished: bool
    ) -> Iterator[Unit]:
        """Yield what becomes a translation: it is finished, unless there is a doubt about one of its forms."""
        raw = self._source.raw
        write_text = functools.partial(_written, writer_of(raw, source))
        strings = [ProgramString(self._pieces(source, ending), _QT, write_text, signs="&") for ending in endings]
        if not all(string.inline.has_words for string in strings):
            return

        def write(translations: Sequence[str], doubts: Sequence[Doubt | None]) -> str:
            texts = [string.written(each) for string, each in zip(strings, translations, strict=True)]
            state = {"type": "unfinished" if is_unfinished or any(doubts) else ""}
            if forms[0] is target:
                return element_with(raw, target, texts[0], state)
            content, done = "", target.inner
            for form, text in zip(forms, texts, strict=True):
                content += raw[done : form.start] + element_with(raw, form, text)
                done = form.end
            return element_with(raw, target, content + raw[done : target.outer], state)

        place = self._source.place(source.start)
        yield Unit(target.start, target.end, [string.inline.document_text(place) for string in strings], write)

    def _pieces(self, source: Element, ending: str) -> Iterator[Piece]:
        for child in source.children:
            if isinstance(child, str):
                yield Piece(Kind.TEXT, text=_PLURAL.sub(ending, child))
            else:  # <byte value="x1b"/>, which XML can't have as itself
                yield Piece(Kind.MARK, self._source.raw[child.start : child.end])


def _written(write: Callable[[str], str], text: str) -> str:
    return write(text).replace('"', "&quot;").replace("'", "&apos;")
