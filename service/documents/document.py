"""The interface of documents: their texts, in order, and the places of the translations."""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from service.documents.errors import DocumentError
from service.domain.errors import counted

STOP = "stop"  # the finish reason of what ended by itself
_SAMPLE_CHARACTERS = 4096
MAX_DEPTH = 200  # of elements or values within each other
MAX_TEXTS = 500_000  # in a document: each takes some hundred bytes


class MimeType(enum.Enum):
    """The format of a text, for the translator."""

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
    """Options of `open_document`.

    `columns` of a table to translate are names, or numbers from 1; with `has_header` the first record has names even if
    they are numbers. `encoding` is that of a text file without a byte order mark; by default what the file declares, or
    UTF-8. `target` is the translations' language code, for formats that name it, `source` the texts', empty if unknown.
    With `has_all`, entries of PO, XLIFF, Qt and TMX that have a translation are translated again. `front_matter` are
    keys of Markdown's front matter with values to translate. With `attributes`, visible or audible attributes of HTML
    are translated, and `target` becomes the page's language. `keys` and `skip_keys` are globs of keys whose values are
    texts, or not, whatever they look like.
    """

    columns: tuple[str, ...] = ()
    target: str = ""
    has_all: bool = False
    source: str = ""
    has_header: bool = False
    encoding: str = ""
    front_matter: tuple[str, ...] = ()
    attributes: bool = False
    keys: tuple[str, ...] = ()
    skip_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Doubt:
    """Reasons why a person should check a translation: its flags, such as "placeholder", and its finish reason."""

    flags: tuple[str, ...] = ()
    finish_reason: str = STOP


NO_DOUBTS: Mapping[int, Doubt] = MappingProxyType({})


class Document(Protocol):
    """A document that was read."""

    @property
    def texts(self) -> Sequence[DocumentText]: ...

    @property
    def notes(self) -> Sequence[str]:
        """Return notes for the reader of the result: one line for each kind of text that is left as it is."""

    @property
    def language(self) -> str:
        """Return the code of the language that the document says its texts are in; empty if it doesn't."""

    def written(self, translations: Sequence[str], doubts: Mapping[int, Doubt] = NO_DOUBTS) -> bytes:
        """Return the document with `translations`, one for each text, in their places.

        A text that is equal to its translation stays byte for byte. `doubts`, by the numbers of the texts, are marked
        where the format can.
        """


def sample(texts: Sequence[DocumentText]) -> tuple[str, MimeType]:
    """Return the beginning of a document, texts of one type, to detect its language from; empty without texts."""
    kind = texts[0].mime_type if texts else MimeType.TEXT
    text = "\n".join(each.text for each in texts[:_SAMPLE_CHARACTERS] if each.mime_type is kind)
    return text[:_SAMPLE_CHARACTERS], kind


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of a source, from `start` to before `end`, that the translation of a text replaces.

    `write` makes the replacement of the translation. With `is_target` the stretch is where a translation belongs, so
    even one equal to the text is written. `inner` are slots within, such as attributes, in order: `write` also takes
    their replacements. `mark` returns changes elsewhere, for a translation and the doubt about it, if any.
    """

    start: int
    end: int
    text: DocumentText
    write: Callable[..., str]
    is_target: bool = False
    inner: tuple["Slot", ...] = ()
    mark: "Callable[[str, Doubt | None], Iterable[Edit]] | None" = None

    @property
    def texts(self) -> "Iterator[DocumentText]":
        yield self.text
        for each in self.inner:
            yield from each.texts

    def changes(self, translations: Iterator[str]) -> Iterator[tuple[int, int, str]]:
        """Yield the stretches that change, and what is there then; take a translation of each of `texts`."""
        translation = next(translations)
        if self.is_target or translation != self.text.text:
            yield self.start, self.end, self._written(translation, translations)
        else:
            for each in self.inner:
                yield from each.changes(translations)

    def _written(self, translation: str, of_inner: Iterator[str]) -> str:
        return self.write(translation, *(each._written(next(of_inner), of_inner) for each in self.inner))


@dataclass(frozen=True, slots=True)
class Unit:
    """An entry with texts, translations and a state, such as PO's.

    From `start` to before `end` it is always replaced by what `write` makes of the translations of `texts`, plural
    forms, and of the doubts about them, or `None`.
    """

    start: int
    end: int
    texts: Sequence[DocumentText]
    write: Callable[[Sequence[str], Sequence[Doubt | None]], str]


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch from `start` to before `end`, and its replacement if texts around it change; equal ones count once."""

    start: int
    end: int
    text: str


def has_words(text: str) -> bool:
    """Return whether a text has anything to translate: a letter of any script."""
    return any(map(str.isalpha, text))


def changed(source: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """Return a source with other text in some stretches, from a start to before an end, in order."""
    output: list[str] = []
    done = 0
    for start, end, text in changes:
        output += (source[done:start], text)
        done = end
    return "".join((*output, source[done:]))


class Spliced:
    """A source whose slots are replaced."""

    def __init__(
        self,
        source: str,
        slots: Iterable[Slot | Unit],
        encode: Callable[[str], bytes] = str.encode,
        notes: Sequence[str] = (),
        edits: Iterable[Edit] = (),
        language: str = "",
    ) -> None:
        """Take slots and units in order, and how the result becomes bytes; `edits` are made if any text changes."""
        self._source = source
        self._slots: list[Slot | Unit] = []
        self.texts: list[DocumentText] = []
        for slot in slots:
            self._slots.append(slot)
            self.texts += slot.texts
            if len(self.texts) > MAX_TEXTS:
                raise DocumentError(f"it has more than {MAX_TEXTS} texts; split it.", self.texts[MAX_TEXTS].place)
        self._encode = encode
        self._edits = tuple(edits)
        self.notes = tuple(notes)
        self.language = language

    def written(self, translations: Sequence[str], doubts: Mapping[int, Doubt] = NO_DOUBTS) -> bytes:
        if len(translations) != len(self.texts):
            raise ValueError(f"{len(translations)} translations for {len(self.texts)} texts")
        changes: list[tuple[int, int, str]] = []
        edits: dict[Edit, None] = {}
        remaining = iter(translations)
        number = 0
        for slot in self._slots:
            if isinstance(slot, Unit):
                own = [next(remaining) for _ in slot.texts]
                about = [doubts.get(number + index) for index in range(len(own))]
                changes.append((slot.start, slot.end, slot.write(own, about)))
                number += len(own)
                continue
            found = list(slot.changes(remaining))
            changes += found
            if found and slot.mark is not None:
                edits.update(dict.fromkeys(slot.mark(translations[number], doubts.get(number))))
            number += sum(1 for _ in slot.texts)
        if changes and (edits or self._edits):
            edits.update(dict.fromkeys(self._edits))
            changes += ((edit.start, edit.end, edit.text) for edit in edits)
            changes.sort(key=lambda change: change[:2])
        return self._encode(changed(self._source, changes))


def notes_on_left(number: int, one: str, many: str = "", why: str = "") -> list[str]:
    """Return the note on so many texts or the like that were left as they are, if there are any, and why."""
    how = "was left as it is" if number == 1 else "were left as they are"
    return [f"{counted(number, one, many)} {how}{why and f': {why}'}."] if number else []
