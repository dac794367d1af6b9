"""What a document is to a translator: its texts, in order, and where their translations go."""

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from service.documents.errors import DocumentError

MAX_TEXTS = 500_000  # in a document: each takes some hundred bytes


class MimeType(enum.Enum):
    """How a translator reads a text."""

    TEXT = "text/plain"
    HTML = "text/html"


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A text to translate; `place` says where it is, such as "line 3"."""

    text: str
    mime_type: MimeType
    place: str


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """What the caller of `open_document` may choose.

    `columns` are the names of the columns of a table to translate, or their numbers from 1; with `has_header` the first
    record has names even if they are numbers. `encoding` is that of a text file without a byte order mark; by default
    what the file declares, or UTF-8. `target` is the language code of the translations,
    for formats that name it. With `has_all`, entries of PO and XLIFF that have a translation are translated again.
    `front_matter` are the keys of front matter in Markdown whose values are translated.
    With `attributes`, so are those attributes of HTML that a reader sees or hears, and the page's language becomes
    `target`.
    """

    columns: tuple[str, ...] = ()
    target: str = ""
    has_all: bool = False
    has_header: bool = False
    encoding: str = ""
    front_matter: tuple[str, ...] = ()
    attributes: bool = False


class Document(Protocol):
    """A document that was read."""

    @property
    def texts(self) -> Sequence[DocumentText]:
        """Return the texts to translate, in the order of the document."""

    @property
    def notes(self) -> Sequence[str]:
        """Return what the reader of the result should know: one line for each kind of text that is left as it is."""

    def written(self, translations: Sequence[str]) -> bytes:
        """Return the document with `translations`, one for each text, in their places.

        A text whose translation is equal to it stays as it was written, byte for byte.

        Raises:
            ValueError: there are more or fewer translations than texts.
        """


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of a source, from `start` to before `end`, that the translation of a text replaces.

    `write` makes of the translation what replaces it. With `is_target` the stretch is not where the text is but where
    its translation belongs, so it is replaced by any translation, even by one that is equal to the text. `inner` are
    slots within the stretch, such as those of attributes: `write` also takes what is written of each of them.
    """

    start: int
    end: int
    text: DocumentText
    write: Callable[..., str]
    is_target: bool = False
    inner: tuple["Slot", ...] = ()

    def changes(self, translation: str, inner: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """Yield the stretches that change, and what is there then."""
        if self.is_target or translation != self.text.text:
            texts = [each.write(text) for each, text in zip(self.inner, inner, strict=True)]
            yield self.start, self.end, self.write(translation, *texts)
        else:
            for each, text in zip(self.inner, inner, strict=True):
                yield from each.changes(text, ())


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of a source, from `start` to before `end`, and what is there if the texts around it are translated."""

    start: int
    end: int
    text: str


def has_words(text: str) -> bool:
    """Return whether there is anything to translate: a letter of any script."""
    return any(map(str.isalpha, text))


class Spliced:
    """A source whose slots are replaced."""

    def __init__(
        self,
        source: str,
        slots: Iterable[Slot],
        encode: Callable[[str], bytes] = str.encode,
        notes: Sequence[str] = (),
        edits: Iterable[Edit] = (),
    ) -> None:
        """Take slots in order, and how the result becomes bytes; `edits` are made if any text is translated.

        Raises:
            DocumentError: there are more than `MAX_TEXTS` slots.
        """
        self._source = source
        self._slots: list[Slot] = []
        self.texts: list[DocumentText] = []
        for slot in slots:
            self._slots.append(slot)
            self.texts += (slot.text, *(each.text for each in slot.inner))
            if len(self.texts) > MAX_TEXTS:
                raise DocumentError(f"it has more than {MAX_TEXTS} texts; split it.", slot.text.place)
        self._encode = encode
        self._edits = tuple(edits)
        self.notes = tuple(notes)

    def written(self, translations: Sequence[str]) -> bytes:
        """See `Document.written`."""
        return self._encode(self.replaced(translations))

    def replaced(self, translations: Sequence[str]) -> str:
        """Return the source with the translations."""
        if len(translations) != len(self.texts):
            raise ValueError(f"{len(translations)} translations for {len(self.texts)} texts")
        given = iter(translations)
        changes = [
            change for slot in self._slots for change in slot.changes(next(given), [next(given) for _ in slot.inner])
        ]
        if changes and self._edits:
            changes += ((edit.start, edit.end, edit.text) for edit in self._edits)
            changes.sort(key=lambda change: change[:2])
        output: list[str] = []
        done = 0
        for start, end, text in changes:
            output += (self._source[done:start], text)
            done = end
        output.append(self._source[done:])
        return "".join(output)
