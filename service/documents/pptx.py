"""Presentations (ECMA-376): paragraphs of slides, speaker's notes, tables, SmartArt, and titles in charts.

Left as they are: masters and layouts, comments, descriptions of pictures, and what charts show of their tables.
"""

import itertools
import re
from collections.abc import Iterator

from service.documents.archive import CONTENT_TYPES, Archive, content_types, package, related
from service.documents.code_styles import CodeStyles, Style, read_prose
from service.documents.document import Document, DocumentOptions
from service.documents.drawing import DRAWN, Drawing, fonts_of_levels, in_bodies
from service.documents.errors import DocumentError
from service.documents.xml_source import XmlSource

_MAIN = re.compile(r"application/vnd\..*(?:presentation|slideshow|template)\.(?:main|macroEnabled\.main)\+xml")
# The kinds of files with texts, in the order in which they are read.
_TEXT_TYPES = (
    "application/vnd.openxmlformats-officedocument.presentationml.slide+xml",
    "application/vnd.openxmlformats-officedocument.presentationml.notesSlide+xml",
    *DRAWN,
)
_LAYOUT = "application/vnd.openxmlformats-officedocument.presentationml.slideLayout+xml"
_COMMENTS = ("application/vnd.openxmlformats-officedocument.presentationml.comments+xml",)


def read(data: bytes, _: DocumentOptions) -> Document:
    archive = Archive(data, "a .pptx", "a presentation")
    types = content_types(archive)
    if not any(_MAIN.fullmatch(each) for each in types.values()):
        raise DocumentError("it names no presentation.", CONTENT_TYPES)
    names = [name for name, kind in types.items() if kind in _TEXT_TYPES]
    names.sort(key=lambda name: _TEXT_TYPES.index(types[name]))
    fonts = (_styles(archive.xml(name)) for name, kind in types.items() if kind == _LAYOUT)
    styles = dict(itertools.chain.from_iterable(fonts))
    layouts = {name: each for name in names for kind, each in related(archive, name) if kind == "slideLayout"}
    parts, notes = read_prose(
        archive, names, names, lambda by_font: Drawing(CodeStyles(styles, None, by_font=by_font), layouts)
    )[1:]
    if _TEXT_TYPES[-1] in types.values():
        notes.append("Charts were left as they are except for their titles: the rest comes from their tables.")
    if any(kind in _COMMENTS for kind in types.values()):
        notes.append("Comments were left as they are.")
    return package(archive, parts, notes)


def _styles(source: XmlSource) -> Iterator[tuple[str, Style]]:
    """Yield the fonts of a layout by placeholder and level, but for those of titles, which are prose."""
    for element, about in in_bodies(source):
        if about and not about.get("type", "").lower().endswith("title"):
            for level, font in fonts_of_levels(element).items():
                yield f"{source.part} {about.get('idx', '0')} {level}", Style("", "", font)
