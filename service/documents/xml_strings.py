r"""Strings of programs in XML: Android's resources, and .NET's `.resx`.

Android's (https://developer.android.com/guide/topics/resources/string-resource): `string`, and the items of `plurals`
and `string-array`, with their markup, also as CDATA or written with `&lt;`. What is in `xliff:g`, references such as
`@string/name`, and what is `translatable="false"` stay. Escapes, such as `\'`, are written where they are needed, and
those of spaces that would be dropped without them in strings that have such ones.
"""

import functools
import html
import re
from collections.abc import Callable, Iterator

from service.documents.accelerators import SIGNS
from service.documents.document import Document, DocumentOptions, Edit, Slot, Spliced, notes_on_left
from service.documents.inline import InlineText, Kind, Piece
from service.documents.keyed_values import KeyedValues
from service.documents.layout import laid_out
from service.documents.values import EscapeStyle, has_half, joined
from service.documents.xml_source import Element, XmlSource, as_raw, read_xml, tag_with, writer_of
from service.text.languages import canonical
from service.text.markup.elements import BLOCKS, VOID

_XLIFF = "urn:oasis:names:tc:xliff:document:1.2"
_CDATA = re.compile(r"<!\[CDATA\[((?:[^\]]++|\](?!\]>))*+)\]\]>")
_MARKUP = re.compile(
    r"""<!--(?:[^-]++|-(?!->))*+-->|<\?(?:[^?]++|\?(?!>))*+\?>"""
    r"""|<(?P<close>/)?+(?P<name>[A-Za-z_][\w:.-]*+)(?:[^"'<>]++|"[^"]*+"|'[^']*+')*+>"""
    r"""|&lt;(?P<closes>/)?+(?P<named>[A-Za-z][\w:.-]*+)(?:[^<>&]++|&(?![lg]t;))*+(?:&gt;|>)"""
)
_EMPTY = ("/>", "/&gt;")
_ESCAPE = re.compile(r"""\\u([0-9A-Fa-f]{4})|\\(.)|"|[ \t\r\n]+""", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t"}
_WRITTEN = str.maketrans({"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t"})
_QUOTED = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_SPACE = r"\u0020"
_REFERENCE = re.compile(r"[@?](?:[\w.+]+:)?[\w.+]+/[\w.]+")


def read_android(data: bytes, options: DocumentOptions) -> Document:
    """Read Android's resources in the encoding that they say; `tools:locale` becomes `options.target`."""
    source, encode = read_xml(data)
    slots: list[Slot] = []
    num_left = 0
    style = EscapeStyle(source.raw)
    for element in source.elements_of("resources", "string", "plurals", "string-array"):
        if element.attributes.get("translatable") == "false":
            continue
        for each in (element,) if element.name == "string" else element.elements:
            inner = source.raw[each.inner : each.outer]
            if "<![CDATA[" in inner and not _CDATA.fullmatch(inner.strip()):
                num_left += 1
            elif slot := _of_item(source, each, _prefix(element), style):
                slots.append(slot)
    edits = []
    if (root := source.root) and options.target and "tools:locale" in root.attributes:
        tag = tag_with(source.raw[root.start : root.inner], {"tools:locale": canonical(options.target)})
        edits.append(Edit(root.start, root.inner, tag))
    notes = notes_on_left(num_left, "string that is partly CDATA", "strings that are partly CDATA")
    return Spliced(source.raw, slots, encode, notes, edits)


def read_resx(data: bytes, options: DocumentOptions) -> Document:
    """Read .NET's resources in the encoding that they say: the values that are strings."""
    source, encode = read_xml(data)
    slots: list[Slot] = []
    values = KeyedValues(options, signs=SIGNS)  # an underscore is WPF's
    for entry in source.elements_of("root", "data"):
        value = entry.first("value")
        is_text = not {"type", "mimetype"} & entry.attributes.keys()
        name = entry.attributes.get("name", "")
        if value is None or not is_text or name.startswith(">>"):
            continue
        write = writer_of(source.raw, value)
        slots += values.slots((name,), value.inner, value.outer, value.text(), source.place(value.inner), write)
    return Spliced(source.raw, slots, encode, values.notes)


def _prefix(element: Element) -> str:
    """Return the name of Android's element around text that is not translated."""
    *_, root = element.ancestors
    return next((f"{key[6:]}:g" for key, value in root.attributes.items() if value == _XLIFF), "xliff:g")


def _of_item(source: XmlSource, element: Element, kept: str, style: EscapeStyle) -> Slot | None:
    start, end = element.inner, element.outer
    content = source.raw[start:end].strip(" \t\r\n")
    start = source.raw.index(content, start)
    is_data = content.startswith("<![CDATA[")
    if is_data:
        start, content = start + len("<![CDATA["), content[len("<![CDATA[") : -len("]]>")]
        text = content.strip(" \t\r\n")
        start, content = start + content.index(text), text
    is_quoted = "<" not in content and _QUOTED.fullmatch(content) is not None
    if is_quoted:
        start, content = start + 1, content[1:-1]
    if _REFERENCE.fullmatch(content):
        return None
    pieces = list(_pieces(content, kept, is_quoted=is_quoted, is_data=is_data))
    keeps_spaces = _SPACE in content
    write = functools.partial(_raw, style, is_data, keeps_spaces)
    inline = InlineText(laid_out(pieces, write))
    if not inline.has_words or has_half(inline.text):
        return None
    document_text = inline.document_text(source.place(start))
    written = functools.partial(_written, inline, write, keeps_spaces)
    return Slot(start, start + len(content), document_text, written)


def _pieces(content: str, kept: str, *, is_quoted: bool, is_data: bool) -> Iterator[Piece]:
    done = 0
    kept_from: int | None = None

    def text(end: int) -> str:
        return _unescaped(content[done:end], is_quoted=is_quoted, is_data=is_data)

    for tag in _MARKUP.finditer(content):
        if kept_from is not None:
            if tag["name"] == kept and tag["close"]:
                yield Piece(Kind.KEPT, content[kept_from : tag.end()], text(tag.start()))
                kept_from, done = None, tag.end()
            continue
        yield Piece(Kind.TEXT, text=text(tag.start()))
        done = tag.end()
        name = (tag["name"] or tag["named"] or "").lower()
        is_end, is_empty = bool(tag["close"] or tag["closes"]), tag[0].endswith(_EMPTY)
        if name == kept and not is_empty and not is_end:
            kept_from = tag.start()
        elif name in BLOCKS or name == "br":
            yield Piece(Kind.BREAK, tag[0])
        elif not name or is_empty or name in VOID:
            yield Piece(Kind.MARK, tag[0])
        else:
            yield Piece(Kind.CLOSE if is_end else Kind.OPEN, tag[0])
    yield Piece(Kind.TEXT, text=text(len(content)))


def _unescaped(raw: str, *, is_quoted: bool, is_data: bool) -> str:
    text = raw.encode("latin-1").decode()
    text = text if is_data else html.unescape(text)

    def unescape(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2]:
            return _ESCAPED.get(match[2], match[2])
        return "" if match[0] == '"' else match[0] if is_quoted else " "

    return joined(_ESCAPE.sub(unescape, text))


def _written(inline: InlineText, write: Callable[[str], str], keeps_spaces: bool, translation: str) -> str:
    output: list[str] = []
    pieces = inline.pieces(translation)
    texts = [number for number, piece in enumerate(pieces) if piece.kind is Kind.TEXT and piece.text]
    for number, piece in enumerate(pieces):
        if piece.kind is Kind.TEXT:
            raw = write(piece.text)
            if keeps_spaces and [number] == texts[:1]:
                raw = _SPACE * (len(raw) - len(raw.lstrip(" "))) + raw.lstrip(" ")
            if keeps_spaces and [number] == texts[-1:]:
                raw = raw.rstrip(" ") + _SPACE * (len(raw) - len(raw.rstrip(" ")))
            output.append("\\" * (not output and raw.startswith(("@", "?"))) + raw)
        else:
            output.append(piece.raw)
    return "".join(output)


def _raw(style: EscapeStyle, is_data: bool, keeps_spaces: bool, text: str) -> str:
    text = style(text.translate(_WRITTEN))
    text = text.replace("  ", f" {_SPACE}") if keeps_spaces else text
    return text.encode().decode("latin-1").replace("]]>", "]] >") if is_data else as_raw(text)
