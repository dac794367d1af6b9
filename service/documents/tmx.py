"""Translation memories (`.tmx`; https://www.gala-global.org/tmx-14b): segments are translated into a variant beside.

An existing variant is kept unless it is empty. White space in a segment stays. Translations to check get a note.
"""

from collections.abc import Iterator, Mapping, Sequence

from service.documents.document import Document, DocumentOptions, Doubt, Spliced, Unit
from service.documents.errors import DocumentError
from service.documents.xliff_inline import InlineReader
from service.documents.xml_source import Element, XmlSource, attribute, element_with, indent, read_xml
from service.text.languages import canonical, folded


def read(data: bytes, options: DocumentOptions) -> Document:
    source, encode = read_xml(data)
    reader = _Reader(source, options)
    units = list(reader.units())
    return Spliced(source.raw, units, encode, language=reader.language)


class _Reader:
    """The segments of one memory; `language` is what its header says that they are in."""

    def __init__(self, source: XmlSource, options: DocumentOptions) -> None:
        self._source = source
        self._has_all = options.has_all
        self._own, self._target = canonical(options.source), canonical(options.target)
        self._inline = InlineReader(source.raw, "")
        self.language = ""

    def units(self) -> Iterator[Unit]:
        missing = ""  # where the first unit is that has no segment in the language
        num_found = 0
        for element in self._source.elements_of("tmx", "header", "tu"):
            if element.name == "header":
                self.language = canonical(_named(element))
                continue
            variants = {each.local.get("lang", ""): each for each in element.elements if each.name == "tuv"}
            target = _chosen(variants, self._target)
            own = self._own or _named(element) or self.language
            source = (
                _chosen(variants, own) if own else next((each for each in variants.values() if each != target), None)
            )
            if source:
                num_found += 1
                yield from self._unit(source, target)
            elif variants and not missing:
                missing = self._source.place(element.start)
        if missing and not num_found:
            raise DocumentError(f"it has no segments in {self._own or self.language!r}.", missing)

    def _unit(self, source: Element, target: Element | None) -> Iterator[Unit]:
        raw, segment = self._source.raw, source.first("seg")
        old = target.first("seg") if target else None
        if segment is None or (target and old is None) or (old and old.text().strip() and not self._has_all):
            return
        string = self._inline.string(segment, keeps_lines=True)
        if not string.inline.has_words:
            return
        before, inner = indent(raw, source.start), indent(raw, segment.start)
        name = next((each for each in source.attributes if each.endswith("lang")), "xml:lang")  # of TMX 1.1, lang

        def write(translations: Sequence[str], doubts: Sequence[Doubt | None]) -> str:
            doubt = string.doubt(translations[0], doubts[0])
            note = f"{inner}<note>dragoman: {', '.join(doubt.flags) or doubt.finish_reason}</note>" if doubt else ""
            written = string.written(translations[0])
            if target and old:
                return note + raw[target.inner : old.start] + element_with(raw, old, written)
            return f"{before}<tuv {name}={attribute(self._target)}>{note}{inner}<seg>{written}</seg>{before}</tuv>"

        start, end = (target.inner, old.end) if target and old else (source.end, source.end)
        yield Unit(start, end, [string.inline.document_text(self._source.place(segment.start))], write)


def _named(element: Element) -> str:
    return element.attributes.get("srclang", "").replace("*all*", "")


def _chosen(variants: Mapping[str, Element], language: str) -> Element | None:
    """Return the variant in a language: `en-US` if there is one, else `en`, and the other way round."""
    wanted = folded(language)
    near = [
        each
        for each in variants
        if f"{folded(each)}-".startswith(f"{wanted}-") or f"{wanted}-".startswith(f"{folded(each)}-")
    ]
    return variants[min(near, key=lambda each: folded(each) != wanted)] if near else None
