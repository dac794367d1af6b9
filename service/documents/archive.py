"""ZIP archives of untrusted origin: read within limits, and written again with some entries replaced."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping

from service.documents.errors import DocumentError

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


class Archive:
    """An archive in memory; its entries are unpacked when they are needed."""

    def __init__(self, data: bytes, file: str = "a .docx", kind: str = "a Word document") -> None:
        """Read the directory; `file` and `kind` are what it should be, for errors."""
        self._kind = kind
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _DAMAGED as error:
            raise DocumentError(f"it is not a ZIP archive, which {file} is: {error}.") from None
        self._entries = self._zip.infolist()
        if len(self._entries) > MAX_ENTRIES:
            raise DocumentError(f"the archive has {len(self._entries)} entries; at most {MAX_ENTRIES} are read.")
        self.names = frozenset(entry.filename for entry in self._entries)
        if len(self.names) < len(self._entries):
            raise DocumentError("the archive has two entries of one name.")
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
                    f"it unpacks {entry.compress_size} bytes to {entry.file_size}, more than {MAX_RATIO} times.",
                    entry.filename,
                )

    def read(self, name: str) -> bytes:
        """Return the content of an entry."""
        if name not in self.names:
            raise DocumentError(f"the archive has no {name}; it is not {self._kind}.")
        entry = self._zip.getinfo(name)
        if entry.file_size > MAX_PART_BYTES:
            raise DocumentError(f"it has {entry.file_size} bytes; at most {MAX_PART_BYTES} are read.", name)
        return b"".join(self._blocks(entry))

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
