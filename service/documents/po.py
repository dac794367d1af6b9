"""GNU gettext's PO files (https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html), and its templates.

Only `msgstr` changes, and the flag `fuzzy` of an entry to check: the call says so, or its arguments are in an order
that its format can't express. A fuzzy entry gets a new translation and stays fuzzy. Plural forms are translations of
`msgid`, the first, and of `msgid_plural`, the others or a single one, so an entry of three or more forms is fuzzy. A
template also gets a charset and a language.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from service.documents.arguments import format_of
from service.documents.document import Document, DocumentOptions, Doubt, Edit, Spliced, Unit
from service.documents.encodings import codec_of, decoded
from service.documents.errors import DocumentError
from service.documents.inline import Kind, Piece
from service.documents.lines import Lines
from service.documents.plural_categories import MAX_FORMS, forms_of
from service.documents.program_strings import ProgramString

_TOKEN = re.compile(
    r"[ \t\r\n\f\v]++"
    r"|(?P<comment>#[^\n]*+)"
    r'|"(?P<string>(?:[^"\\\n]++|\\.)*+)"'
    r"|(?P<keyword>msgctxt|msgid_plural|msgid|msgstr|domain)(?:[ \t]*+\[[ \t]*+(?P<form>\d{1,2})[ \t]*+\])?(?!\w)"
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\"}
_WRITTEN = str.maketrans({value: f"\\{name}" for name, value in _ESCAPED.items()})
_CHARSET = re.compile(r'(?i)"[^"\n]{0,2000}?\bContent-Type:[^"\n]{0,200}?charset=([\w.:-]{1,40})')
_HEADER = re.compile(r'(?:\A|\n)[ \t]*+msgid[ \t]*+""\s*+msgstr(?:\s*+"(?:[^"\\\n]++|\\.)*+")++')
_NO_CHARSET = "CHARSET"  # of a template
_ONE_OR_MANY = "bg ca da de el en es et eu fi fo fy gl hu it nb nl nn no pt sq sv sw"  # languages with nplurals=2


@dataclass(slots=True)
class PoString:
    """A value: its position, quotes included, and its first line."""

    place: str
    start: int
    end: int
    parts: list[str] = field(default_factory=list)

    @property
    def value(self) -> str:
        return "".join(self.parts)


@dataclass(slots=True)
class Entry:
    """An entry: its strings by their keywords, and the forms of its translation.

    `flags_end` is the position after the sign of its flags, -1 if it has none; `start` is where else they belong.
    """

    strings: dict[str, PoString] = field(default_factory=dict)
    forms: list[PoString] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    flags_end: int = -1
    start: int = -1

    @property
    def text(self) -> str:
        """Return what is to be translated; empty for the header."""
        return self.strings["msgid"].value


def entries(source: str) -> Iterator[Entry]:
    """Yield the entries that are not obsolete, as gettext reads them.

    White space and line ends don't matter, a value may be of several strings, and comments belong to the entry after
    them.
    """
    entry = Entry()
    last: PoString | None = None
    lines, position = Lines(source), 0
    while position < len(source):
        token = _TOKEN.match(source, position)
        place = lines.place(position)
        if token is None:
            raise DocumentError(
                "expected a comment, or msgid, msgstr and the like with a string in quotes, "
                f"not {source[position : position + 80].splitlines()[0][:40]!r}.",
                place,
            )
        position = token.end()
        if token["comment"] is not None:
            if entry.forms:
                yield _checked(entry, place)
                entry, last = Entry(), None
            _read_comment(entry, token)
        elif token["string"] is not None:
            if last is None:
                raise DocumentError(f"expected msgid, msgstr and the like before {token[0][:40]!r}.", place)
            if not last.parts:
                last.place, last.start = place, token.start()
            last.parts.append(_value(token["string"]))
            last.end = token.end()
        elif token["keyword"] is not None:
            if entry.forms and token["keyword"] in ("msgctxt", "msgid", "domain"):
                yield _checked(entry, place)
                entry = Entry()
            last = PoString(place, token.end(), token.end())
            if token["keyword"] != "domain":
                _add(entry, token, last)
    if entry.strings:
        yield _checked(entry, place)


def in_quotes(text: str, ending: str) -> str:
    """Return a value in quotes, each of its lines on one of its own; `ending` is that of the file's lines."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text) if "\n" in text[:-1] else [text]
    strings = [f'"{line.translate(_WRITTEN)}"' for line in lines]
    return ending.join(['""', *strings] if len(strings) > 1 else strings)


def _read_comment(entry: Entry, token: re.Match[str]) -> None:
    """Take flags into an entry. What is obsolete is no entry; flags before it are its own."""
    kind = token["comment"][1:2]
    if kind == "~" and not entry.strings:
        entry.flags, entry.flags_end, entry.start = set(), -1, -1
    elif kind == ",":
        entry.flags |= {flag.strip() for flag in token["comment"][2:].split(",")}
        entry.flags_end = token.start() + 2
    elif kind == "|" and entry.start < 0:
        entry.start = token.start()


def _add(entry: Entry, token: re.Match[str], string: PoString) -> None:
    keyword = token["keyword"]
    if entry.start < 0:
        entry.start = token.start()
    if keyword == "msgstr":
        if int(token["form"] or 0) != len(entry.forms):
            raise DocumentError(f"expected msgstr[{len(entry.forms)}], not {token[0]}.", string.place)
        entry.forms.append(string)
    elif keyword in entry.strings or entry.forms:
        raise DocumentError(f"the entry has a second {keyword}, or one after msgstr.", string.place)
    else:
        entry.strings[keyword] = string


def _checked(entry: Entry, place: str) -> Entry:
    has_plural = "msgid_plural" in entry.strings
    is_whole = len(entry.forms) <= MAX_FORMS and all(string.parts for string in (*entry.strings.values(), *entry.forms))
    if not is_whole or "msgid" not in entry.strings or not entry.forms or (len(entry.forms) > 1 and not has_plural):
        problem = f"the entry before this line needs msgid and msgstr, one for each of at most {MAX_FORMS} forms."
        raise DocumentError(problem, place)
    return entry


def _value(written: str) -> str:
    return _ESCAPE.sub(_unescaped, written) if "\\" in written else written


def _unescaped(match: re.Match[str]) -> str:
    if match[1] or match[2]:
        return chr(int(match[1], 8) if match[1] else int(match[2], 16))
    return _ESCAPED.get(match[3], match[0])  # what is no escape stays as it is written


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read a catalogue; untranslated and fuzzy entries are to be translated, or all with `has_all`."""
    return _read(data, options, is_template=False)


def read_template(data: bytes, options: DocumentOptions) -> Document:
    return _read(data, options, is_template=True)


def _read(data: bytes, options: DocumentOptions, *, is_template: bool) -> Document:
    source, encode = _decoded(data)
    units: list[Unit] = []
    edits: list[Edit] = []
    for entry in entries(source):
        if not entry.text:
            edits += _of_header(source, entry, options.target) if is_template else ()
        elif options.has_all or "fuzzy" in entry.flags or not all(form.value for form in entry.forms):
            units += _units(source, entry)
    return Spliced(source, units, encode, edits=edits)


def _decoded(data: bytes) -> tuple[str, Callable[[str], bytes]]:
    """Return the text of a file in its header's charset, and what encodes it; in UTF-8 if the charset lacks signs."""
    found = _charset(data[:65_536].decode("latin-1"))  # which the header is in
    codec = "ascii" if found and found[1].upper() == _NO_CHARSET else codec_of(found[1]) if found else "utf-8"
    if codec == "ascii":
        return decoded(data)[0], functools.partial(_encoded, codec)
    if found is None or codec == "utf-8":
        return decoded(data)
    line = data.count(b"\n", 0, found.start()) + 1
    if codec is None:
        raise DocumentError(
            f"its charset is {found[1]}, which is not known; convert it with msgconv --to-code=UTF-8.", f"line {line}"
        )
    try:
        return data.decode(codec), functools.partial(_encoded, codec)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(
            f"byte {error.start + 1}, 0x{data[error.start]:02x}, is not {found[1]}, which its header names.",
            f"line {line}",
        ) from None


def _encoded(codec: str, text: str) -> bytes:
    try:
        return text.encode(codec)
    except UnicodeEncodeError:
        charset = _charset(text)
        assert charset is not None  # it was read by it
        return (text[: charset.start(1)] + "UTF-8" + text[charset.end(1) :]).encode("utf-8", "replace")


def _charset(text: str) -> re.Match[str] | None:
    """Return the name of the charset in the header; other entries may be about web pages."""
    header = _HEADER.search(text)
    return _CHARSET.search(text, *header.span()) if header else None


def _of_header(source: str, header: Entry, target: str) -> Iterator[Edit]:
    from service.text.languages import canonical  # slow to import, and only templates need it

    start, end = header.forms[0].start, header.forms[0].end
    language = canonical(target).replace("-", "_")
    is_known = language.partition("_")[0] in _ONE_OR_MANY.split() and language != "pt_BR"
    for pattern, text in (
        (rf"(?<=charset=){_NO_CHARSET}\b", "UTF-8"),
        (r"(?<=Language:)[ \t]*(?=\\n|\")", f" {language}" if language else ""),
        (r"nplurals=INTEGER; plural=EXPRESSION;", "nplurals=2; plural=(n != 1);" if is_known else ""),
    ):
        found = re.compile(pattern).search(source, start, end)
        if found and text:
            yield Edit(found.start(), found.end(), text)


def _units(source: str, entry: Entry) -> Iterator[Unit]:
    """Yield what is from the flags of an entry to the end of its translation, if it has any words."""
    texts = [entry.text]
    if "msgid_plural" in entry.strings:
        texts = forms_of(entry.text, entry.strings["msgid_plural"].value, len(entry.forms))
    kind, is_java = format_of(entry.flags), "java-format" in entry.flags
    strings = [
        ProgramString([Piece(Kind.TEXT, text=text.replace("''", "'") if is_java else text)], kind) for text in texts
    ]
    forms = [each for each in zip(entry.forms, strings, strict=True) if each[1].inline.has_words]
    if not forms:
        return
    start, end = entry.start if entry.flags_end < 0 else entry.flags_end, forms[-1][0].end
    ending = "\r\n" if "\r\n" in source[entry.start : end + 2] else "\n"

    def write(translations: Sequence[str], doubts: Sequence[Doubt | None]) -> str:
        is_fuzzy, written, done = len(entry.forms) > 2, "", start
        for (form, string), translation, doubt in zip(forms, translations, doubts, strict=True):
            is_fuzzy |= string.doubt(translation, doubt) is not None
            written += source[done : form.start] + in_quotes(string.written(translation), ending)
            done = form.end
        if not is_fuzzy or "fuzzy" in entry.flags:
            return written
        if entry.flags_end >= 0:
            return f" fuzzy,{written}"
        is_first = not source[source.rfind("\n", 0, start) + 1 : start].strip()
        return f"{'' if is_first else ending}#, fuzzy{ending}{written}"

    yield Unit(start, end, [string.inline.document_text(form.place) for form, string in forms], write)
