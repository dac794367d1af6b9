"""Several files of an archive as one document, such as the slides of a presentation or the chapters of a book."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from service.documents.archive import Archive
from service.documents.document import Document, Doubt, Edit, Slot, Spliced
from service.documents.errors import DocumentError
from service.documents.xml_source import XmlSource, from_raw

_BORDER = "\ud800"  # between files: half of a character, which no file and no translation has
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Part:
    """A file of an archive: its name and its content, of which `encode` makes bytes.

    Slots and edits are by its positions, in order.
    """

    name: str
    source: str
    encode: Callable[[str], bytes]
    slots: Iterable[Slot] = ()
    edits: Iterable[Edit] = ()


def package(archive: Archive, parts: Iterable[Part], notes: Sequence[str] = ()) -> Document:
    """Return the parts as one document, in their order; all other files of the archive stay as they are."""
    every: list[Part] = []
    slots: list[Slot] = []
    edits: list[Edit] = []
    start = 0
    for part in parts:
        slots += (_moved(slot, start) for slot in part.slots)
        edits += (replace(edit, start=start + edit.start, end=start + edit.end) for edit in part.edits)
        every.append(replace(part, slots=(), edits=()))
        start += len(part.source) + len(_BORDER)

    def encode(text: str) -> bytes:
        contents = zip(every, text.split(_BORDER) if every else (), strict=True)
        return archive.written({part.name: part.encode(content) for part, content in contents})

    return Spliced(_BORDER.join(part.source for part in every), slots, encode, notes, edits)


def _moved(slot: Slot, distance: int) -> Slot:
    mark = slot.mark

    def moved_mark(translation: str, doubt: Doubt | None) -> Iterator[Edit]:
        for edit in mark(translation, doubt) if mark else ():
            yield replace(edit, start=distance + edit.start, end=distance + edit.end)

    inner = tuple(_moved(each, distance) for each in slot.inner)
    return replace(slot, start=distance + slot.start, end=distance + slot.end, inner=inner, mark=mark and moved_mark)


def xml_part(
    archive: Archive,
    name: str,
    slots: Callable[[XmlSource], Iterable[Slot]],
    edits: Callable[[XmlSource], Iterable[Edit]] = lambda _: (),
) -> Part:
    """Return the part of an XML file; `slots` yields its texts, and `edits` what else changes."""
    data = archive.read(name)
    if data.startswith(_UTF_16):
        raise DocumentError("it is UTF-16; save the document again with its own program.", name)
    source = XmlSource(data, name)
    return Part(name, source.raw, from_raw, list(slots(source)), list(edits(source)))
