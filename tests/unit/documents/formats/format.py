"""What a format is to the tests: its constructs, how they become a document, and who else can read that."""

import io
import random
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.documents import DocumentOptions, DocumentText
from tests.unit.documents.pseudo import capitals

TO_GERMAN = DocumentOptions(target="de")
_OUTSIDE_TAGS = re.compile(r"(<w:instrText>[^<]*|<[^<>]*>|&#?\w+;)|[^<&]+|[<&]")


def lowered(text: str) -> str:
    """Return a text with small letters outside of its tags."""
    return _OUTSIDE_TAGS.sub(lambda match: match[1] or match[0].lower(), text)


def same(*expected: str) -> dict[str, str]:
    """Return constructs by what they are before: what is in capitals is what is translated into them."""
    return {lowered(each): each for each in expected}


@dataclass(frozen=True)
class Mixture:
    """Constructs within each other: blocks and pairs around others, which are at each `{}`. `|` is between them."""

    blocks: str
    inlines: str
    pairs: str = "{}"

    def __call__(self, chance: random.Random) -> str:
        """Return a block."""
        parts = chance.choice(self.blocks.split("|")).split("{}")
        return "".join(part + self._words(chance, 0) for part in parts[:-1]) + parts[-1]

    def _words(self, chance: random.Random, depth: int) -> str:
        pairs = self.pairs.split("|")
        words = chance.choices(self.inlines.split("|"), k=chance.randint(1, 4))
        if depth < 3:
            words = [chance.choice(pairs).replace("{}", each) if chance.random() < 0.3 else each for each in words]
            if chance.random() < 0.2:
                words.append(chance.choice(pairs).replace("{}", self._words(chance, depth + 1)))
        return "".join(words)


@dataclass(frozen=True)
class Format:
    """A format, whose constructs stand for themselves: any number of them, in any order, is a document.

    Attributes:
        document: Makes a file of a body and the code of the language that the file says it is in.
        constructs: What documents have in them, and what a translator into capitals makes of each.
        outline: Another reader than ours: what it finds in a file. It raises `ValueError` for what it can't read.
        part: The file in the archive that has the constructs; empty if the document is no archive.
        once: Constructs that a document can have but once.
        variants: Other forms of a file, of which each is a document too, such as one with other line ends.
        mixture: Returns a block of constructs within each other.
        translate: Returns a text in capitals.
        outline_of_damaged: What readers find that agree on whole files only; `outline` if there is none.
        has_targets: Whether translations have places of their own, beside the texts.
    """

    document: Callable[[str, str], bytes]
    constructs: Mapping[str, str]
    outline: Callable[[bytes], Any]
    part: str = ""
    separator: str = "\n"
    once: Sequence[str] = ()
    variants: Sequence[Callable[[bytes], bytes]] = ()
    mixture: Callable[[random.Random], str] | None = None
    options: DocumentOptions = TO_GERMAN
    translate: Callable[[DocumentText], str] = capitals
    outline_of_damaged: Callable[[bytes], Any] | None = None
    has_targets: bool = False

    def written(self, constructs: Sequence[str], language: str = "en") -> bytes:
        return self.document(self.separator.join(constructs), language)

    def expected(self, constructs: Sequence[str]) -> bytes:
        expected = [self.constructs[each] for each in constructs]
        return self.written(expected, "de" if expected != [*constructs] else "en")

    def body(self, data: bytes) -> bytes:
        """Return the file that the constructs are in."""
        return files(data)[self.part] if self.part else data

    def with_body(self, data: bytes, body: bytes) -> bytes:
        return archived({**files(data), self.part: body}) if self.part else body


def archived(content: Mapping[str, str | bytes]) -> bytes:
    """Return a ZIP archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, each in content.items():
            # What is repeated often would be too small for what it unpacks to.
            is_stored = name == "mimetype" or len(each) > 100_000
            kind = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), each, kind)
    return stream.getvalue()


def files(data: bytes) -> dict[str, bytes]:
    """Return what is in an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        if "mimetype" in archive.namelist():
            first = archive.infolist()[0]
            assert (first.filename, first.compress_type, first.extra) == ("mimetype", zipfile.ZIP_STORED, b"")
        return {name: archive.read(name) for name in archive.namelist()}


def crlf(data: bytes) -> bytes:
    return re.sub(rb"\r?\n", b"\r\n", data)


def marked(data: bytes) -> bytes:
    """Return a file with a byte order mark."""
    return b"\xef\xbb\xbf" + data


def in_utf_16(data: bytes) -> bytes:
    return data.decode().encode("utf-16")
