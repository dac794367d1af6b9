"""XML by position: elements with the bytes that they were read from, so that everything else can stay as it is.

Documents are untrusted. One that declares an entity, or refers to one of an external document type, is rejected: none
is ever expanded or loaded. Depth is limited, and only the requested elements are kept.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from xml.parsers import expat

from service.documents.document import MAX_DEPTH
from service.documents.encodings import codec_of, decoded
from service.documents.errors import DocumentError
from service.documents.lines import Lines

_BLOCK = 65_536  # bytes parsed at once
_TAG = re.compile(r"""<[^\s/>]++(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")
_DECLARED = re.compile(rb"""<\?xml\s[^>]{0,100}?encoding\s{0,10}=\s{0,10}["']([A-Za-z0-9_.:-]{1,40})["']""")
_ATTRIBUTE = re.compile(r"""(?<!\s)(\s++)([^\s=]++)\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")
_INDENT = re.compile(r"\r?\n[ \t]*+\Z")
_NONE: Mapping[str, str] = MappingProxyType({})
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})


@dataclass(slots=True, eq=False)
class Element:
    """An element: its name as written, with its prefix, its attributes, and its content, elements and decoded texts.

    Its start tag is from `start` to before `inner`, its end tag from `outer` to before `end`; in an empty-element tag
    the last three are equal. An element that was not requested has no `children`.
    """

    name: str
    attributes: dict[str, str]
    start: int
    inner: int
    outer: int = 0
    end: int = 0
    parent: "Element | None" = None
    children: "list[Element | str]" = field(default_factory=list)

    @property
    def elements(self) -> "Iterator[Element]":
        return (child for child in self.children if isinstance(child, Element))

    @property
    def ancestors(self) -> "Iterator[Element]":
        element: Element | None = self
        while element is not None:
            yield element
            element = element.parent

    @property
    def local(self) -> dict[str, str]:
        """Return the attributes by their names without prefixes."""
        return {key.rpartition(":")[2]: value for key, value in self.attributes.items()}

    def inherited(self, name: str) -> str:
        """Return the value of an attribute, of the innermost element that has it; empty if none has."""
        return next((value for each in self.ancestors if (value := each.attributes.get(name))), "")

    def first(self, name: str) -> "Element | None":
        return next((child for child in self.elements if child.name == name), None)

    def at(self, *path: str) -> "Element | None":
        """Return the first element on a path of names without prefixes."""
        found: Element | None = self
        for name in path:
            children = found.elements if found else ()
            found = next((each for each in children if each.name.rpartition(":")[2] == name), None)
        return found

    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)


class XmlSource:
    """A document in UTF-8; `raw` is it with a character for each byte, so positions are those of bytes."""

    def __init__(self, data: bytes, part: str = "") -> None:
        self.raw = data.decode("latin-1")
        self.place = Lines(self.raw, part).place
        self._data = data
        self.part = part
        self.root: Element | None = None  # once it has been read

    def elements_of(self, root: str, *wanted: str) -> Iterator[Element]:
        """Yield the elements of the wanted names, as `elements` does, of a document with this root."""

        def names(found: Element) -> Collection[str]:
            if found.name != root:
                problem = f"the root is <{found.name[:40]}>; expected <{root}>."
                raise DocumentError(problem, self.place(found.start))
            return wanted

        return self.elements(names)

    def elements(self, wanted: Callable[[Element], Collection[str]]) -> Iterator[Element]:
        """Yield the elements of the wanted names that are in no other such element; `wanted` is asked with the root."""
        if (nul := self._data.find(b"\0")) >= 0:  # from which expat would guess an encoding of its own
            raise DocumentError("it has a NUL character, which XML does not allow.", self.place(nul))
        parser = _Parser(self, wanted)
        for start in range(0, len(self._data), _BLOCK):
            self._parsed(parser, self._data[start : start + _BLOCK], is_last=False)
            yield from parser.take()
        self._parsed(parser, b"", is_last=True)
        yield from parser.take()

    def _parsed(self, parser: "_Parser", block: bytes, *, is_last: bool) -> None:
        try:
            parser.expat.Parse(block, is_last)
        except expat.ExpatError as error:
            place = f"{self.part}, " if self.part else ""
            raise DocumentError(
                f"it is not well-formed XML: {expat.errors.messages[error.code]}.",
                f"{place}line {error.lineno}, column {error.offset + 1}",
            ) from None


def decoded_xml(data: bytes, part: str = "") -> tuple[bytes, Callable[[bytes], bytes]]:
    """Return XML in UTF-8, and its encoder: by byte order mark, else declaration, with missing characters by number."""
    declared = _DECLARED.match(data)
    codec = "utf-8"
    if declared and not declared[1].upper().startswith((b"UTF-16", b"UCS-2")):  # which can't be read as ASCII
        codec = codec_of(declared[1].decode()) or ""
    elif data.startswith((b"<\0", b"\0<")):
        codec = "utf-16-le" if data[1] == 0 else "utf-16-be"
    place = f"{part}, line 1" if part else "line 1"
    if not codec:
        raise DocumentError(f"its encoding is {declared[1].decode()}; convert it to UTF-8.", place)  # type: ignore[index]
    if codec in ("utf-8", "utf-8-sig") or (codec == "ascii" and not data.isascii()):
        text, encode = decoded(data)
        return text.encode(), lambda raw: encode(raw.decode())
    try:
        found = data.decode(codec).encode()
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"byte {error.start + 1} is not {codec.upper()}, the encoding that the file declares; correct it.", place
        ) from None
    return found, lambda raw: raw.decode().encode(codec, "xmlcharrefreplace")


def read_xml(data: bytes) -> tuple[XmlSource, Callable[[str], bytes]]:
    """Return a document in its declared encoding, and the encoder of its changed `raw`."""
    data, encode = decoded_xml(data)
    return XmlSource(data), lambda raw: encode(from_raw(raw))


def as_raw(text: str) -> str:
    """Return a text as it is written in `XmlSource.raw`: escaped, in UTF-8, and without what XML can't have."""
    return _NOT_XML.sub("", text).translate(_ESCAPES).encode().decode("latin-1")


def writer_of(raw: str, element: Element) -> Callable[[str], str]:
    """Return a writer like `as_raw` that uses the line ends of an element of a document."""
    return _with_crlf if "\r\n" in raw[element.inner : element.outer] else as_raw


def _with_crlf(text: str) -> str:
    return as_raw(text).replace("\n", "\r\n")


def from_raw(raw: str) -> bytes:
    return raw.encode("latin-1")


def attribute(value: str) -> str:
    return '"' + as_raw(value).replace('"', "&quot;") + '"'


def tag_with(tag: str, attributes: Mapping[str, str]) -> str:
    """Return a start tag with these attributes instead of its own of the same names; without those that are empty."""
    missing = dict(attributes)

    def replaced(match: re.Match[str]) -> str:
        value = missing.pop(match[2], None)
        return match[0] if value is None else f"{match[1]}{match[2]}={attribute(value)}" * bool(value)

    tag = _ATTRIBUTE.sub(replaced, tag)
    added = "".join(f" {name}={attribute(value)}" for name, value in missing.items() if value)
    end = len(tag) - (2 if tag.endswith("/>") else 1)
    return tag[:end] + added + tag[end:]


def element_with(raw: str, element: Element, content: str, attributes: Mapping[str, str] = _NONE) -> str:
    """Return an element with other content, and with these attributes, as `tag_with` writes them."""
    tag = tag_with(raw[element.start : element.inner], attributes)
    if element.inner == element.end:
        return f"{tag.removesuffix('/>').rstrip()}>{content}</{element.name}>"
    return tag + content + raw[element.outer : element.end]


def indent(raw: str, position: int) -> str:
    """Return the line end and the white space before a position; nothing if something else is before it on its line."""
    found = _INDENT.search(raw, max(0, position - 200), position)
    return found[0] if found else ""


class _Parser:
    """The open elements while a document is parsed."""

    def __init__(self, source: XmlSource, wanted: Callable[[Element], Collection[str]]) -> None:
        self._source = source
        self._wanted = wanted
        self._names: Collection[str] = ()
        self._open: Element | None = None
        self._depth = 0
        self._outermost: Element | None = None  # the wanted element that is being read
        self._done: list[Element] = []
        self.expat: Any = expat.ParserCreate("utf-8")
        self.expat.buffer_text = True
        self.expat.specified_attributes = True
        self.expat.EntityDeclHandler = self._entity
        self.expat.SkippedEntityHandler = self._skipped
        self.expat.StartElementHandler = self._started
        self.expat.EndElementHandler = self._ended
        self.expat.CharacterDataHandler = self._text

    def take(self) -> Iterator[Element]:
        yield from self._done
        self._done.clear()

    def _entity(self, name: str, *_: object) -> None:
        place = self._source.place(self.expat.CurrentByteIndex)
        raise DocumentError(
            f"it declares the entity {name[:40]!r}, and declarations are not supported; remove it.", place
        )

    def _skipped(self, name: str, _: object) -> None:
        place = self._source.place(self.expat.CurrentByteIndex)
        raise DocumentError(
            f"it refers to the entity {name[:40]!r}, which it does not declare; write the character itself.", place
        )

    def _started(self, name: str, attributes: dict[str, str]) -> None:
        start = self.expat.CurrentByteIndex
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise DocumentError(f"its elements are nested more than {MAX_DEPTH} deep.", self._source.place(start))
        tag = _TAG.match(self._source.raw, start)
        assert tag is not None  # expat has read one
        element = Element(name, attributes, start, tag.end(), parent=self._open)
        if self._open is None:
            self._source.root = element
            self._names = self._wanted(element)
        if self._outermost is not None:
            assert self._open is not None
            self._open.children.append(element)
        elif name in self._names:
            self._outermost = element
        self._open = element

    def _ended(self, _: str) -> None:
        element = self._open
        assert element is not None
        raw = self._source.raw
        if raw[element.inner - 2] == "/":
            element.outer = element.end = element.inner
        else:
            element.outer = self.expat.CurrentByteIndex
            element.end = raw.index(">", element.outer) + 1
        self._depth -= 1
        self._open = element.parent
        if element is self._outermost:
            self._done.append(element)
            self._outermost = None

    def _text(self, text: str) -> None:
        if self._outermost is not None:
            assert self._open is not None
            self._open.children.append(text)
