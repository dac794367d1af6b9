"""Presentations (ECMA-376): paragraphs of slides, speaker's notes, tables, SmartArt, and titles in charts.

Left as they are: masters and layouts, comments, descriptions of pictures, and what charts show of their tables.
"""

import re
from collections.abc import Mapping

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
_LEVELS = "012345678"
_COMMENTS = ("application/vnd.openxmlformats-officedocument.presentationml.comments+xml",)


def read(data: bytes, _: DocumentOptions) -> Document:
    """Read a presentation."""
    archive = Archive(data, "a .pptx", "a presentation")
    types = content_types(archive)
    if not any(_MAIN.fullmatch(each) for each in types.values()):
        raise DocumentError("it names no presentation.", CONTENT_TYPES)
    names = [name for name, kind in types.items() if kind in _TEXT_TYPES]
    names.sort(key=lambda name: _TEXT_TYPES.index(types[name]))
    styles, default = _styles(archive, types)
    layouts = {name: each for name in names for kind, each in related(archive, name) if kind == "slideLayout"}
    _, parts, notes = read_prose(
        archive, names, names, lambda by_font: Drawing(CodeStyles(styles, default, by_font=by_font), layouts)
    )
    if _TEXT_TYPES[-1] in types.values():
        notes.append("Charts were left as they are, but for their titles: their tables name the rest.")
    if any(kind in _COMMENTS for kind in types.values()):
        notes.append("Comments were left as they are.")
    return package(archive, parts, notes)


def _styles(archive: Archive, types: Mapping[str, str]) -> tuple[dict[str, Style], str | None]:
    """Return the fonts of layouts by placeholder and level, those of their masters by level, and the first of these."""
    styles: dict[str, Style] = {}
    default: str | None = None
    for layout in (name for name, kind in types.items() if kind == _LAYOUT):
        master = next((name for kind, name in related(archive, layout) if kind == "slideMaster"), "")
        if master and f"{master} 0" not in styles:
            source = XmlSource(archive.read(master), master)
            for element in source.elements(lambda root: (f"{root.name.removesuffix('sldMaster')}bodyStyle",)):
                fonts = fonts_of_levels(element)
                styles |= {f"{master} {level}": Style("", "", fonts.get(level)) for level in _LEVELS}
                default = default or fonts.get(_LEVELS[0])
        styles |= {f"{layout} {level}": Style("", f"{master} {level}", None) for level in _LEVELS}
        for element, about in in_bodies(XmlSource(archive.read(layout), layout)):
            placeholder = f"{layout} {about.get('idx', '0')}"
            if about.get("type", "").lower().endswith("title"):
                styles[f"{placeholder} 0"] = Style("Title", "", None)
            elif about:
                fonts = fonts_of_levels(element)
                styles |= {f"{placeholder} {level}": Style("", "", font) for level, font in fonts.items()}
    return styles, default
