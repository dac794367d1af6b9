"""Values with keys in files of strings: which of them are texts, and notes on those that are left."""

import fnmatch
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from service.documents.arguments import format_of
from service.documents.code_values import is_code
from service.documents.document import DocumentOptions, MimeType, Slot, notes_on_left
from service.documents.inline import Kind, Piece
from service.documents.program_strings import ProgramString
from service.documents.values import value_slots
from service.domain.errors import counted

_PLAIN = re.compile(r"(?:[^\W_]|[ ,;!?'()])*+\.?")  # without markup, arguments and accelerators: most values
_MAX_KEYS = 12  # that a note names
_MAX_NAME = 40  # characters of each
_MAX_CHARACTERS = 500  # of a key that is compared with globs


class KeyedValues:
    """The values of one document; whether one is a text follows from the options on its key, else from its form.

    A glob matches a path, or a part of one with all that is below; `keys` win over `skip_keys`.
    """

    def __init__(self, options: DocumentOptions, flag: str = "", signs: str = "&~") -> None:
        """Take gettext's flag for the program's format of arguments, if it is known, and the signs of accelerators."""
        self._keys, self._skipped = _pattern(options.keys), _pattern(options.skip_keys)
        self._kind, self._signs = format_of((flag,)), signs
        self._num_left = 0
        self._left: dict[str, None] = {}  # the keys of those that are left, in order

    @property
    def notes(self) -> list[str]:
        names = [*self._left][:_MAX_KEYS]
        names += [counted(len(self._left) - _MAX_KEYS, "other")] * (len(self._left) > _MAX_KEYS)
        keys = f"keys {', '.join(names)}"
        return notes_on_left(self._num_left, "value that is not text", "values that are not text", keys)

    def slots(
        self,
        path: Sequence[str],
        start: int,
        end: int,
        value: str,
        place: str,
        encode: Callable[[str], str],
        mime_type: MimeType = MimeType.TEXT,
    ) -> Iterator[Slot]:
        """Yield the slot of a value, as `value_slots` does, if it is a text; `path` are the keys that lead to it."""
        for slot in value_slots(start, end, value, place, encode, mime_type):
            string = None
            if mime_type is not MimeType.HTML and not _PLAIN.fullmatch(slot.text.text):
                string = ProgramString([Piece(Kind.TEXT, text=slot.text.text)], self._kind, signs=self._signs)
                if not string.inline.has_words:
                    continue
            if not self._is_text(path, slot.text.text):
                self._num_left += 1
                name = next((name for name in reversed(path) if name), '""')
                self._left[name[-_MAX_NAME:].rpartition(".")[2]] = None
            elif string is None:
                yield slot
            else:
                write = functools.partial(_written, string, slot.write)
                yield replace(slot, text=string.inline.document_text(place), write=write)

    def _is_text(self, path: Sequence[str], text: str) -> bool:
        if self._keys or self._skipped:
            names = ".".join(name[:_MAX_CHARACTERS] for name in path)
            if self._keys and self._keys.match(names):
                return True
            if self._skipped and self._skipped.match(names):
                return False
        return not is_code(path[-1] if path else "", text.replace("&", ""))  # without accelerators


def _pattern(globs: Sequence[str]) -> re.Pattern[str] | None:
    """Return a pattern for paths that have one of these globs, between points or the ends."""
    forms = (f"{before}{glob}{after}" for glob in globs for before in ("", "*.") for after in ("", ".*"))
    return re.compile("|".join(map(fnmatch.translate, forms))) if globs else None


def _written(string: ProgramString, write: Callable[[str], str], translation: str) -> str:
    return write(string.written(translation))
