"""Untrusted ZIP archives: read within limits, written with entries replaced; several of their files as one document."""

import io
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from service.documents.document import Document, Doubt, Edit, Slot, Spliced
from service.documents.errors import DocumentError
from service.documents.xml_source import Element, XmlSource, decoded_xml, from_raw

MAX_ENTRIES = 10_000
MAX_TOTAL_BYTES = 256 * 1024 * 1024  # of all entries, unpacked
MAX_PART_BYTES = 64 * 1024 * 1024  # of an entry that is read as a whole
MAX_RATIO = 250  # of an entry, unpacked to packed; text has 5 to 50, DEFLATE's maximum is 1032
_RATIO_MATTERS = 1024 * 1024  # bytes unpacked
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others may need any amount of memory
# What zipfile raises for bytes that are no archive, or no whole one.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)
_BORDER = "\ud800"  # between parts: half of a character, which none of them and no translation has
CONTENT_TYPES = "[Content_Types].xml"  # of an Open Packaging archive (ECMA-376, part 2)


class Archive:
    """An archive in memory; its entries are unpacked when they are needed."""

    def __init__(self, data: bytes, file: str = "a .docx", kind: str = "a Word document") -> None:
        """Read the directory; `file` and `kind` are what it should be, for errors."""
        self._kind = kind
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _DAMAGED as error:
            raise DocumentError(f"it is not a ZIP archive, as {file} must be: {error}.") from None
        self._entries = self._zip.infolist()
        if len(self._entries) > MAX_ENTRIES:
            raise DocumentError(f"the archive has {len(self._entries)} entries; at most {MAX_ENTRIES} are read.")
        self.names = frozenset(entry.filename for entry in self._entries)
        self._named = {_normal(name): name for name in sorted(self.names)}
        if len(self.names) < len(self._entries):
            raise DocumentError("the archive has two entries of the same name.")
        total = sum(entry.file_size for entry in self._entries)
        if total > MAX_TOTAL_BYTES:
            raise DocumentError(f"the archive unpacks to {total} bytes; at most {MAX_TOTAL_BYTES} are read.")
        for entry in self._entries:
            if entry.flag_bits & 1:
                raise DocumentError("it is encrypted; remove the password.", entry.filename)
            if entry.compress_type not in _METHODS:
                raise DocumentError(f"its compression is {entry.compress_type}; only DEFLATE is read.", entry.filename)
            if entry.file_size > max(_RATIO_MATTERS, MAX_RATIO * entry.compress_size):
                raise DocumentError(
                    f"it unpacks from {entry.compress_size} bytes to {entry.file_size}; at most {MAX_RATIO} times as "
                    "many are allowed.",
                    entry.filename,
                )

    def named(self, name: str) -> str | None:
        """Return the entry of a name as Open Packaging compares it: without regard to case."""
        return self._named.get(_normal(name))

    def read(self, name: str) -> bytes:
        if name not in self.names:
            raise DocumentError(f"the archive has no {name}; it is not {self._kind}.")
        entry = self._zip.getinfo(name)
        if entry.file_size > MAX_PART_BYTES:
            raise DocumentError(f"it has {entry.file_size} bytes; at most {MAX_PART_BYTES} are read.", name)
        return b"".join(self._blocks(entry))

    def xml(self, name: str) -> XmlSource:
        """Return an XML file, in UTF-8 whatever its encoding is."""
        return XmlSource(decoded_xml(self.read(name), name)[0], name)

    def written(self, replaced: Mapping[str, bytes]) -> bytes:
        """Return the archive with other contents for some entries; order, dates and methods stay."""
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w") as copy:
            copy.comment = self._zip.comment
            for entry in self._entries:
                own = zipfile.ZipInfo(entry.filename, entry.date_time)
                own.compress_type, own.external_attr = entry.compress_type, entry.external_attr
                own.create_system, own.comment = entry.create_system, entry.comment
                content = replaced.get(entry.filename)
                if content is not None:
                    copy.writestr(own, content)
                    continue
                own.file_size = entry.file_size
                with copy.open(own, "w") as target:
                    for block in self._blocks(entry):
                        target.write(block)
        return output.getvalue()

    def _blocks(self, entry: zipfile.ZipInfo) -> Iterator[bytes]:
        """Yield the content of an entry, and no more than the directory says."""
        room = entry.file_size
        try:
            with self._zip.open(entry) as stream:
                while block := stream.read(min(1024 * 1024, room + 1)):
                    room -= len(block)
                    if room < 0:
                        raise DocumentError("it unpacks to more bytes than the archive says.", entry.filename)
                    yield block
        except _DAMAGED as error:
            raise DocumentError(f"it is damaged: {error}.", entry.filename) from None
        if room:
            raise DocumentError("it unpacks to fewer bytes than the archive says.", entry.filename)


@dataclass(frozen=True, slots=True)
class Part:
    """A file, or a cell; slots and edits are in order, by positions in the content, which `encode` writes."""

    name: str
    source: str
    encode: Callable[[str], bytes] = str.encode
    slots: Iterable[Slot] = ()
    edits: Iterable[Edit] = ()


def package(archive: Archive, parts: Iterable[Part], notes: Sequence[str] = ()) -> Document:
    """Return the parts as one document, in their order; all other files of the archive stay as they are."""

    def write(contents: Iterable[tuple[Part, str]]) -> bytes:
        return archive.written({part.name: part.encode(content) for part, content in contents})

    return joined(parts, write, notes)


def joined(
    parts: Iterable[Part], write: Callable[[Iterable[tuple[Part, str]]], bytes], notes: Sequence[str] = ()
) -> Document:
    """Return the parts as one document, in their order; `write` makes it of them and their translated contents."""
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
        return write(zip(every, text.split(_BORDER) if every else (), strict=True))

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
    data, encode = decoded_xml(archive.read(name), name)
    source = XmlSource(data, name)
    return Part(name, source.raw, lambda raw: encode(from_raw(raw)), list(slots(source)), list(edits(source)))


def content_types(archive: Archive) -> dict[str, str]:
    """Return the content types of an archive's files, by their names; `slide2.xml` comes before `slide10.xml`."""
    found: dict[str, str] = {}  # of files, and of the endings of names
    for element in archive.xml(CONTENT_TYPES).elements(_types):
        own = element.attributes
        found[_normal(own.get("PartName", f".{own.get('Extension', '')}"))] = own.get("ContentType", "")
    names = sorted(
        archive.names - {CONTENT_TYPES}, key=lambda name: [part.zfill(9) for part in re.split(r"(\d+)", name)]
    )
    types = {name: found.get(_normal(name), found.get(f".{name.lower().rpartition('.')[2]}", "")) for name in names}
    return {name: kind for name, kind in types.items() if kind}


def _types(root: Element) -> tuple[str, ...]:
    prefix = root.name.removesuffix("Types")
    return f"{prefix}Override", f"{prefix}Default"


def related(archive: Archive, part: str) -> Iterator[tuple[str, str]]:
    """Yield the end of the type of each relationship of a file, or of the package, and the file that it leads to."""
    folder, base = posixpath.split(part.replace("\\", "/"))
    name = archive.named(posixpath.join(folder, "_rels", f"{base}.rels"))
    if name is None:
        return
    for element in archive.xml(name).elements(lambda root: (f"{root.name.removesuffix('Relationships')}Relationship",)):
        target = element.attributes.get("Target", "").replace("\\", "/")
        found = archive.named(posixpath.normpath(posixpath.join("/", folder, target)))
        if found is not None and element.attributes.get("TargetMode", "") != "External":
            yield element.attributes.get("Type", "").rpartition("/")[2], found


def _normal(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()
