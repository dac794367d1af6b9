"""What a document is to a translator: its texts, in order, and where their translations go."""

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
    what the file declares, or UTF-8. `target` is the language code of the translations, for formats that name it, and
    `source` that of the texts, empty if it is not known. With `has_all`, entries of PO, XLIFF, Qt and TMX that
    have a translation are translated again. `front_matter` are the keys of front matter in Markdown whose values are
    translated. With `attributes`, so are those attributes of HTML that a reader sees or hears, and the page's language
    becomes `target`. Of files of keys and values, `keys` and `skip_keys` are globs of those whose values are translated
    even if they look like code, and left even if they look like texts.
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
    """Why a person should check a translation: its flags, such as "placeholder", and its finish reason."""

    flags: tuple[str, ...] = ()
    finish_reason: str = STOP


NO_DOUBTS: Mapping[int, Doubt] = MappingProxyType({})


class Document(Protocol):
    """A document that was read."""

    @property
    def texts(self) -> Sequence[DocumentText]:
        """Return the texts to translate, in the order of the document."""

    @property
    def notes(self) -> Sequence[str]:
        """Return what the reader of the result should know: one line for each kind of text that is left as it is."""

    @property
    def language(self) -> str:
        """Return the code of the language that the document says its texts are in; empty if it doesn't."""

    def written(self, translations: Sequence[str], doubts: Mapping[int, Doubt] = NO_DOUBTS) -> bytes:
        """Return the document with `translations`, one for each text, in their places.

        A text whose translation is equal to it stays as it was written, byte for byte. `doubts` are those about some
        translations, by their numbers; a format that can mark a translation as one to check does so.
        """


def sample(texts: Sequence[DocumentText]) -> tuple[str, MimeType]:
    """Return the beginning of a document, texts of one type, to detect its language from; empty without texts."""
    kind = texts[0].mime_type if texts else MimeType.TEXT
    text = "\n".join(each.text for each in texts[:_SAMPLE_CHARACTERS] if each.mime_type is kind)
    return text[:_SAMPLE_CHARACTERS], kind


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of a source, from `start` to before `end`, that the translation of a text replaces.

    `write` makes of the translation what replaces it. With `is_target` the stretch is not where the text is but where
    its translation belongs, so it is replaced by any translation, even by one that is equal to the text. `inner` are
    slots within the stretch, such as those of attributes, in order: `write` also takes what is written of each of them.
    `mark` returns what changes elsewhere with a translation, and with the doubt about it, if there is one.
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
    """An entry of a document that has texts and, beside them, their translations with a state, such as one of PO.

    The stretch from `start` to before `end` is always replaced: by what `write` makes of the translations of `texts`,
    one for each form of a text that depends on a number, and of the doubts about them, or `None`.
    """

    start: int
    end: int
    texts: Sequence[DocumentText]
    write: Callable[[Sequence[str], Sequence[Doubt | None]], str]


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of a source, from `start` to before `end`, and what is there if texts around it are translated.

    Equal ones, of several texts, are one.
    """

    start: int
    end: int
    text: str


def has_words(text: str) -> bool:
    """Return whether there is anything to translate: a letter of any script."""
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
