"""Qt Linguist's `.ts` (https://doc.qt.io/qt-6/linguist-ts-file-format.html): sources are translated into translations.

A message without a translation gets one, and is unfinished only if the call that translated it says that a person
should check it. One that is unfinished and has a translation gets a new one and stays unfinished, as in PO. Of a
message with numerus forms the source stands for all of them: `%n file(s)` is read as `%n file` and as `%n files`. Of
three or more forms a translator knows only two, so such messages are left as they are, and a note says so.
"""

import functools
import re
from collections.abc import Callable, Iterator

from service.documents.arguments import format_of
from service.documents.document import Document, DocumentOptions, Doubt, Edit, Slot, Spliced
from service.documents.errors import DocumentError
from service.documents.inline import Kind, Piece
from service.documents.program_strings import ProgramString
from service.documents.xml_source import Element, XmlSource, as_raw, attribute, decoded_xml, from_raw
from service.text.languages import canonical

_TYPE = re.compile(r"""(?<!\s)\s++type\s*=\s*(?:"[^"]*"|'[^']*')""")
_LANGUAGE = re.compile(r"""(?<=\s)language\s*=\s*(?:"[^"]*"|'[^']*')""")
_PLURAL = re.compile(r"(?<=\w\w)\(([a-z]{1,3})\)(?!\w)")  # the ending of file(s)
_AS_IT_IS = r"(\1)"
_ENDINGS = {1: (r"\1",), 2: ("", r"\1")}  # of a source, in the forms of a language that has so many
_QT = format_of(("qt-format",))
_Mark = Callable[[str, Doubt | None], Iterator[Edit]]


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read messages in the encoding that the file says; its language becomes `options.target`."""
    data, encode = decoded_xml(data)
    reader = _Reader(XmlSource(data), options)
    slots = list(reader.slots())
    edits = [*reader.edits, *reader.language_edits()]
    language = canonical(reader.root.attributes.get("sourcelanguage", "")) if reader.root else ""
    return Spliced(data.decode("latin-1"), slots, lambda raw: encode(from_raw(raw)), reader.notes, edits, language)


class _Reader:
    """The texts of one document, and what changes with any of them."""

    def __init__(self, source: XmlSource, options: DocumentOptions) -> None:
        self._source = source
        self._options = options
        self._num_kept = 0
        self._num_left = 0
        self.root: Element | None = None
        self.edits: list[Edit] = []

    @property
    def notes(self) -> list[str]:
        number = self._num_left
        return [f"messages of other than one or two forms were left as they are: {number}."] if number else []

    def slots(self) -> Iterator[Slot]:
        for message in self._source.elements(self._messages):
            source, target = message.first("source"), message.first("translation")
            kind = target.attributes.get("type", "") if target else ""
            if source is None or target is None or kind in ("obsolete", "vanished"):
                continue
            is_numerus = message.attributes.get("numerus") == "yes"
            forms = [each for each in target.elements if each.name == "numerusform"] if is_numerus else [target]
            endings = _ENDINGS.get(len(forms), ()) if is_numerus else (_AS_IT_IS,)
            has_text = bool(forms) and all(form.text().strip() for form in forms)
            if has_text and kind != "unfinished" and not self._options.has_all:
                self._num_kept += 1
            elif not endings or target.first("lengthvariant") is not None:
                self._num_left += 1
            else:
                mark = None if has_text and kind else self._mark(target)
                for form, ending in zip(forms, endings, strict=True):
                    yield from self._of_form(source, form, ending, mark)

    def language_edits(self) -> Iterator[Edit]:
        """Yield what makes the target the language of the file, after its messages have been read."""
        if self.root is None or not self._options.target:
            return
        found, target = self.root.attributes.get("language", ""), canonical(self._options.target)
        if canonical(found).partition("-")[0] == target.partition("-")[0]:
            return
        if found and self._num_kept:
            problem = f"its language is {found[:40]!r}, with translations, and the new ones are in {target!r}"
            place = self._source.place(self.root.start)
            raise DocumentError(f"{problem}; remove these, or have all translated again.", place)
        named = f"language={attribute(target.replace('-', '_'))}"
        if match := _LANGUAGE.search(self._source.raw, self.root.start, self.root.inner):
            yield Edit(*match.span(), named)
        else:
            yield Edit(self.root.start + len("<TS"), self.root.start + len("<TS"), f" {named}")

    def _messages(self, root: Element) -> tuple[str, ...]:
        if root.name != "TS":
            problem = f"the root is <{root.name[:40]}>; Qt's messages are in <TS>."
            raise DocumentError(problem, self._source.place(root.start))
        self.root = root
        return ("message",)

    def _of_form(self, source: Element, form: Element, ending: str, mark: _Mark | None) -> Iterator[Slot]:
        line_end = "\r\n" if "\r\n" in self._source.raw[source.inner : source.outer] else "\n"
        written = functools.partial(_written, line_end)
        string = ProgramString(self._pieces(source, ending), _QT, written, signs="&")
        if not string.inline.has_words:
            return
        closing = ""
        if form.inner == form.end:
            self.edits.append(Edit(form.inner - 2, form.inner - 1, ""))
            closing = f"</{form.name}>"
        text = string.inline.document_text(self._source.place(source.start))
        write = functools.partial(_with_closing, string, closing)
        yield Slot(form.inner, form.outer, text, write, is_target=True, mark=mark)

    def _pieces(self, source: Element, ending: str) -> Iterator[Piece]:
        for child in source.children:
            if isinstance(child, str):
                yield Piece(Kind.TEXT, text=_PLURAL.sub(ending, child))
            else:  # <byte value="x1b"/>, which XML can't have as itself
                yield Piece(Kind.MARK, self._source.raw[child.start : child.end])

    def _mark(self, target: Element) -> _Mark:
        """Return what changes in the tag of a translation: it is finished, unless there is a doubt about it."""
        found = _TYPE.search(self._source.raw, target.start, target.inner)
        end = target.inner - 1 - (target.inner == target.end)
        return functools.partial(_marked, found.span() if found else (end, end), end)


def _written(line_end: str, text: str) -> str:
    """Return a text as Qt's own programs write it."""
    return as_raw(text).replace('"', "&quot;").replace("'", "&apos;").replace("\n", line_end)


def _with_closing(string: ProgramString, closing: str, translation: str) -> str:
    return string.written(translation) + closing


def _marked(type_span: tuple[int, int], end: int, _: str, doubt: Doubt | None) -> Iterator[Edit]:
    yield Edit(*type_span, "")
    if doubt is not None:
        yield Edit(end, end, ' type="unfinished"')
