"""GNU gettext's PO files (https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html), and its templates.

Only `msgstr` changes, and the flag `fuzzy` of an entry that a person should check: because the call that translated it
says so, or because its arguments are in an order that its format can't tell. An entry that is fuzzy gets a new
translation and stays fuzzy. Of an entry with plural forms the translations of `msgid` and `msgid_plural` are its forms
if the language has one or two; of three or more forms a translator knows only which sentence to say for one and for
many, so such entries are left as they are, and a note says so. A template also gets a charset and a language.
"""

import functools
import re
from collections.abc import Callable, Iterator

from service.documents.arguments import format_of
from service.documents.document import Document, DocumentOptions, Doubt, Edit, Slot, Spliced
from service.documents.encodings import codec_of, decoded
from service.documents.errors import DocumentError
from service.documents.inline import Kind, Piece
from service.documents.po_entries import Entry, entries, in_quotes
from service.documents.program_strings import ProgramString

_CHARSET = re.compile(r'(?i)"[^"\n]{0,2000}?\bContent-Type:[^"\n]{0,200}?charset=([\w.:-]{1,40})')
_HEADER = re.compile(r'(?:\A|\n)[ \t]*+msgid[ \t]*+""\s*+msgstr(?:\s*+"(?:[^"\\\n]++|\\.)*+")++')
_NO_CHARSET = "CHARSET"  # of a template
_ONE_OR_MANY = "bg ca da de el en es et eu fi fo fy gl hu it nb nl nn no pt sq sv sw"  # languages with nplurals=2


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read a catalogue; untranslated and fuzzy entries are to be translated, or all with `has_all`."""
    return _read(data, options, is_template=False)


def read_template(data: bytes, options: DocumentOptions) -> Document:
    """Read a template, as `read` does."""
    return _read(data, options, is_template=True)


def _read(data: bytes, options: DocumentOptions, *, is_template: bool) -> Document:
    source, encode = _decoded(data)
    slots: list[Slot] = []
    edits: list[Edit] = []
    num_left = 0
    for entry in entries(source):
        if not entry.text:
            edits += _of_header(source, entry, options.target) if is_template else ()
        elif options.has_all or "fuzzy" in entry.flags or not all(form.value for form in entry.forms):
            num_left += len(entry.forms) > 2
            slots += _slots(source, entry)
    notes = [f"entries with more than two plural forms were left as they are: {num_left}."] if num_left else []
    return Spliced(source, slots, encode, notes, edits)


def _decoded(data: bytes) -> tuple[str, Callable[[str], bytes]]:
    """Return the text of a file in the charset that its header names, and what encodes it.

    A translation that the charset lacks signs for is encoded in UTF-8, and the header then names that.
    """
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
    """Return what names the charset in the header; other entries may be about web pages."""
    header = _HEADER.search(text)
    return _CHARSET.search(text, *header.span()) if header else None


def _of_header(source: str, header: Entry, target: str) -> Iterator[Edit]:
    """Yield what a template lacks to be a catalogue."""
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


def _slots(source: str, entry: Entry) -> Iterator[Slot]:
    texts = [entry.text]
    if "msgid_plural" in entry.strings:
        texts = [*texts[: len(entry.forms) - 1], entry.strings["msgid_plural"].value]
        if len(entry.forms) > 2:
            return
    kind = format_of(entry.flags)
    is_java = "java-format" in entry.flags
    ending = "\r\n" if "\r\n" in source[entry.start : entry.forms[-1].end + 2] else "\n"
    for text, form in zip(texts, entry.forms, strict=True):
        string = ProgramString([Piece(Kind.TEXT, text=text.replace("''", "'") if is_java else text)], kind)
        if string.inline.has_words:
            document_text = string.inline.document_text(f"line {form.line}")
            write = functools.partial(_written, string, ending)
            mark = functools.partial(_mark, source, entry, ending, string)
            yield Slot(form.start, form.end, document_text, write, is_target=True, mark=mark)


def _written(string: ProgramString, ending: str, translation: str) -> str:
    return in_quotes(string.written(translation), ending)


def _mark(
    source: str, entry: Entry, ending: str, string: ProgramString, translation: str, doubt: Doubt | None
) -> Iterator[Edit]:
    """Yield what makes an entry fuzzy if a person should check the translation."""
    if "fuzzy" in entry.flags or (doubt is None and string.is_ordered(translation)):
        return
    if entry.flags_end >= 0:
        yield Edit(entry.flags_end, entry.flags_end, " fuzzy,")
    else:
        is_first = not source[source.rfind("\n", 0, entry.start) + 1 : entry.start].strip()
        yield Edit(entry.start, entry.start, f"{'' if is_first else ending}#, fuzzy{ending}")
