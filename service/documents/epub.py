"""Books in EPUB 2 and 3 (https://www.w3.org/TR/epub-33): chapters in reading order, tables of contents, and the title.

Chapters are pages of XHTML. Their language, and the book's, become those of the translations.
"""

import functools
import html as entities
import posixpath
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from service.documents.archive import Archive, Part, package, xml_part
from service.documents.document import Document, DocumentOptions, Edit, Slot
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.lines import Lines
from service.documents.values import value_slots
from service.documents.xhtml import page
from service.documents.xml_source import Element, XmlSource, as_raw
from service.text.languages import canonical

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_CHAPTERS = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")
_CONTENTS = "application/x-dtbncx+xml"
_LABEL = re.compile(r"(<(?:[\w.-]++:)?text>)([^<]*+)</")


def read(data: bytes, options: DocumentOptions) -> Document:
    archive = Archive(data, "an .epub", "an EPUB")
    target = canonical(options.target) if options.target else ""
    root = next(XmlSource(archive.read(_CONTAINER), _CONTAINER).elements(lambda _: ("rootfile",)), None)
    if root is None:
        raise DocumentError("it names no book.", _CONTAINER)
    name = root.attributes.get("full-path", "")
    kinds, metadata = _listed(archive, name)
    if _ENCRYPTION in archive.names:
        locked = archive.read(_ENCRYPTION).decode("utf-8", "replace")
        if any(f'"{each}"' in unquote(locked) for each, kind in kinds.items() if kind in _CHAPTERS):
            raise DocumentError("its chapters are encrypted (DRM), so they can't be read.", _ENCRYPTION)
    parts = [
        xml_part(archive, name, lambda source: _titles(source, metadata), lambda _: _languages(metadata, target)),
        *(_chapter(archive, each, target) for each, kind in kinds.items() if kind in _CHAPTERS),
        *(_contents(archive, each) for each, kind in kinds.items() if kind == _CONTENTS),
    ]
    return package(archive, parts)


def _listed(archive: Archive, name: str) -> tuple[dict[str, str], list[Element]]:
    """Return the types of the book's files, those to read first, and its titles and languages."""
    items: dict[str, tuple[str, str]] = {}
    spine: list[str] = []
    metadata: list[Element] = []
    source = XmlSource(archive.read(name), name)

    def wanted(root: Element) -> tuple[str, ...]:
        prefix = root.name.removesuffix("package")
        return (f"{prefix}item", f"{prefix}itemref", "dc:title", "dc:language")

    for element in source.elements(wanted):
        attributes = element.attributes
        if element.name.startswith("dc:"):
            metadata.append(element)
        elif element.name.endswith("itemref"):
            spine.append(attributes.get("idref", ""))
        else:
            path = unquote(attributes.get("href", ""))
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            items[attributes.get("id", "")] = path, attributes.get("media-type", "")
    order = [*dict.fromkeys(each for each in spine if each in items), *items]
    return {items[each][0]: items[each][1] for each in order if items[each][0] in archive.names}, metadata


def _titles(source: XmlSource, metadata: list[Element]) -> Iterator[Slot]:
    for each in metadata:
        if each.name == "dc:title":
            yield from value_slots(each.inner, each.outer, each.text(), source.place(each.inner), as_raw)


def _languages(metadata: list[Element], target: str) -> Iterator[Edit]:
    languages = [each for each in metadata if each.name == "dc:language" and each.inner < each.end]
    for each in languages[:1] if target else ():
        yield Edit(each.inner, each.outer, as_raw(target))


def _chapter(archive: Archive, name: str, target: str) -> Part:
    source, encode = _text(archive, name)
    return Part(name, source, encode, *page(source, name, target))


def _contents(archive: Archive, name: str) -> Part:
    """Return the table of contents of EPUB 2; it mostly has a document type declaration, which XML must not have."""
    source, encode = _text(archive, name)
    lines = Lines(source, name)
    slots: list[Slot] = []
    for label in _LABEL.finditer(source):
        value = entities.unescape(label[2])
        place = lines.place(label.start(2))
        slots += value_slots(*label.span(2), value, place, functools.partial(entities.escape, quote=False))
    return Part(name, source, encode, slots)


def _text(archive: Archive, name: str) -> tuple[str, Callable[[str], bytes]]:
    try:
        return decoded(archive.read(name))
    except DocumentError as error:
        raise DocumentError(error.problem, f"{name}, {error.place}" if error.place else name) from None
