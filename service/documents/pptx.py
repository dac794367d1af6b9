"""Presentations (ECMA-376): paragraphs of slides, speaker's notes, tables, SmartArt, and titles in charts.

Left as they are: masters and layouts, comments, descriptions of pictures, and what charts show of their tables.
"""

import re

from service.documents.archive import CONTENT_TYPES, Archive, content_types, package, xml_part
from service.documents.code_styles import note_on_code
from service.documents.document import Document, DocumentOptions
from service.documents.drawing import DRAWN, Drawing
from service.documents.errors import DocumentError

_MAIN = re.compile(r"application/vnd\..*(?:presentation|slideshow|template)\.(?:main|macroEnabled\.main)\+xml")
# The kinds of files with texts, in the order in which they are read.
_TEXT_TYPES = (
    "application/vnd.openxmlformats-officedocument.presentationml.slide+xml",
    "application/vnd.openxmlformats-officedocument.presentationml.notesSlide+xml",
    *DRAWN,
)
_COMMENTS = ("application/vnd.openxmlformats-officedocument.presentationml.comments+xml",)


def read(data: bytes, _: DocumentOptions) -> Document:
    """Read a presentation."""
    archive = Archive(data, "a .pptx", "a presentation")
    types = content_types(archive)
    if not any(_MAIN.fullmatch(each) for each in types.values()):
        raise DocumentError("it names no presentation.", CONTENT_TYPES)
    names = [name for name, kind in types.items() if kind in _TEXT_TYPES]
    names.sort(key=lambda name: _TEXT_TYPES.index(types[name]))
    drawing = Drawing()
    parts = [xml_part(archive, name, drawing.slots) for name in names]
    if drawing.num_left and not any(part.slots for part in parts):  # slides of nothing but code were typewritten
        drawing = Drawing(by_font=False)
        parts = [xml_part(archive, name, drawing.slots) for name in names]
    notes = note_on_code(drawing.num_left)
    if _TEXT_TYPES[-1] in types.values():
        notes.append("Charts were left as they are, but for their titles: their tables name the rest.")
    if any(kind in _COMMENTS for kind in types.values()):
        notes.append("Comments were left as they are.")
    return package(archive, parts, notes)
