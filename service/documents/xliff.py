"""XLIFF 1.2 and 2 (https://docs.oasis-open.org/xliff): sources are translated into targets.

A target with a translation is kept, unless its state asks for one. Written targets get the state `translated`, or one
that asks for a review if the call does; in 1.2 also the qualifier `mt-suggestion`. Their language is written in BCP 47,
however the caller spells it. `<file>`s of other languages stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from service.documents.document import Document, DocumentOptions, Doubt, Edit, Spliced, Unit, notes_on_left
from service.documents.errors import DocumentError
from service.documents.xliff_inline import InlineReader
from service.documents.xml_source import Element, XmlSource, element_with, indent, read_xml, tag_with
from service.text.languages import canonical, primary

_UNFINISHED = ("new", "needs-translation", "needs-adaptation", "needs-l10n")  # states of 1.2


def read(data: bytes, options: DocumentOptions) -> Document:
    source, encode = read_xml(data)
    reader = _Reader(source, options)
    units = list(reader.units())
    return Spliced(source.raw, units, encode, reader.notes(), reader.edits, reader.language)


class _Reader:
    """The texts of one document, and the languages that it still lacks."""

    def __init__(self, source: XmlSource, options: DocumentOptions) -> None:
        self._source = source
        self._options = replace(options, target=canonical(options.target), source=canonical(options.source))
        self._is_first = False  # XLIFF 1
        self._prefix = ""
        self._inline = InlineReader(source.raw, "")
        self._is_ours: dict[int, bool] = {}  # by position of the element that names the languages
        self._others: list[DocumentError] = []
        self._sources: list[str] = []
        self.edits: list[Edit] = []

    def units(self) -> Iterator[Unit]:
        for unit in self._source.elements(self._names):
            if unit.inherited("translate") in ("", "yes") and self._is_of_languages(unit):
                yield from self._of_first(unit) if self._is_first else self._of_second(unit)

    def notes(self) -> list[str]:
        if self._others and not any(self._is_ours.values()):
            raise self._others[0]
        why = str(self._others[0]).removesuffix(".") if self._others else ""
        return [
            *notes_on_left(len(self._others), "file of another language", "files of other languages", why),
            *notes_on_left(
                self._inline.num_sub_flows, "text in an inline code (<sub>)", "texts in inline codes (<sub>)"
            ),
        ]

    @property
    def language(self) -> str:
        """Return the language of all sources that have been read; empty if it is not one."""
        return self._sources[0] if len({primary(each) for each in self._sources}) == 1 else ""

    def _names(self, root: Element) -> tuple[str, ...]:
        self._prefix, _, name = root.name.rpartition(":")
        self._prefix += ":" if self._prefix else ""
        self._inline = InlineReader(self._source.raw, self._prefix)
        version = root.attributes.get("version", "")
        if name != "xliff" or version[:2] not in ("1.", "2."):
            raise DocumentError(
                f"the root is <{root.name[:40]}> of version {version[:10]!r}; expected <xliff> of version 1.2 or 2.0.",
                self._source.place(root.start),
            )
        self._is_first = version.startswith("1.")
        return (self._prefix + ("trans-unit" if self._is_first else "unit"),)

    def _of_first(self, unit: Element) -> Iterator[Unit]:
        source, target = unit.first(f"{self._prefix}source"), unit.first(f"{self._prefix}target")
        if source is None:
            return
        is_approved = unit.attributes.get("approved") == "yes"
        is_done = is_approved
        if target is not None and target.text().strip():
            is_done |= target.attributes.get("state", "translated") not in _UNFINISHED
        if is_done and not self._options.has_all:
            return
        for found in self._unit(unit.first(f"{self._prefix}seg-source") or source, target, None):
            if is_approved:
                self._edit_tag(unit, {"approved": "no"})
            yield found

    def _of_second(self, unit: Element) -> Iterator[Unit]:
        for segment in unit.elements:
            source, target = segment.first(f"{self._prefix}source"), segment.first(f"{self._prefix}target")
            if segment.name != f"{self._prefix}segment" or source is None:
                continue
            has_target = target is not None and bool(target.text().strip())
            state = segment.attributes.get("state", "translated" if has_target else "initial")
            is_done = (state != "initial" and has_target) or state == "final"
            if not is_done or self._options.has_all:
                yield from self._unit(source, target, segment)

    def _unit(self, source: Element, target: Element | None, segment: Element | None) -> Iterator[Unit]:
        """Yield the replacement of a target, or a new one after its source; in 2 of the `segment` with the state."""
        raw, string = self._source.raw, self._inline.string(source)
        if not string.inline.has_words:
            return
        self._name_language(source)
        start, end = (target.start, target.end) if target else (source.end, source.end)
        name = f"{self._prefix}target"

        def write(translations: Sequence[str], doubts: Sequence[Doubt | None]) -> str:
            doubt = string.doubt(translations[0], doubts[0])
            content, states = string.written(translations[0]), _states_of_first(doubt) if segment is None else {}
            if target:
                written = element_with(raw, target, content, states)
            else:
                written = f"{indent(raw, source.start)}{tag_with(f'<{name}>', states)}{content}</{name}>"
            if segment:
                written = raw[segment.inner : start] + written + raw[end : segment.outer]
                written = element_with(raw, segment, written, _states_of_second(doubt))
            return written

        text = string.inline.document_text(self._source.place(source.start))
        whole = (segment.start, segment.end) if segment else (start, end)
        yield Unit(*whole, [text], write)

    def _is_of_languages(self, unit: Element) -> bool:
        """Return whether a unit's texts and targets are in the languages that were asked for, or of unknown ones."""
        element = self._languages(unit)
        if element is None:
            return True
        if element.start not in self._is_ours:
            keys = ("source-language", "target-language") if self._is_first else ("srcLang", "trgLang")
            wanted = (self._options.source, self._options.target)
            clauses = ("and the source language was given as", "and the target language is")
            self._is_ours[element.start] = True
            for key, language, words in zip(keys, wanted, clauses, strict=True):
                found = element.attributes.get(key, "")
                if found and language and primary(canonical(found)) != primary(language):
                    self._is_ours[element.start] = False
                    problem = f"its {key} is {found!r}, {words} {language!r}."
                    self._others.append(DocumentError(problem, self._source.place(element.start)))
                    break
            else:
                self._sources.append(canonical(element.attributes.get(keys[0], "")))
        return self._is_ours[element.start]

    def _name_language(self, source: Element) -> None:
        """Set the targets' language on the element that names the languages, unless it is set."""
        element, key = self._languages(source), "target-language" if self._is_first else "trgLang"
        if element is not None and self._options.target and key not in element.attributes:
            element.attributes[key] = self._options.target
            self._edit_tag(element, {key: self._options.target})

    def _edit_tag(self, element: Element, attributes: Mapping[str, str]) -> None:
        tag = tag_with(self._source.raw[element.start : element.inner], attributes)
        self.edits.append(Edit(element.start, element.inner, tag))

    def _languages(self, element: Element) -> Element | None:
        """Return the element that names the languages: in 1.2 the file around `element`, in 2 the root."""
        ancestors = list(element.ancestors)
        if not self._is_first:
            return ancestors[-1]
        return next((each for each in ancestors if each.name == f"{self._prefix}file"), None)


def _states_of_first(doubt: Doubt | None) -> Mapping[str, str]:
    return {"state": "needs-review-translation" if doubt else "translated", "state-qualifier": "mt-suggestion"}


def _states_of_second(doubt: Doubt | None) -> Mapping[str, str]:
    if doubt is None:
        return {"state": "translated", "subState": ""}
    return {"state": "initial", "subState": f"dragoman:{next(iter(doubt.flags), doubt.finish_reason)}"}
