"""Calls that leave the source language out: one call becomes several, each with the texts of one language."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from service.domain.checkpoint import paced
from service.domain.errors import InvalidRequest, Path
from service.domain.translation import MimeType, Translation, TranslationRequest
from service.text.detection import UNDETERMINED
from service.text.languages import in_message
from service.text.markup import HtmlDocument, parse


class ReadText(NamedTuple):
    """A text without markup, for whoever looks at its language only, and, where it is HTML, the document it is."""

    plain: str
    document: HtmlDocument | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A request for the texts of one language, and where each of them is in the whole request.

    Without `indices` it is the whole request. `documents` are the texts as they were parsed, where they are HTML and
    have been looked at; `detected_language_code` is empty where the caller named the language.
    """

    request: TranslationRequest
    indices: tuple[int, ...] = ()
    documents: tuple[HtmlDocument, ...] = ()
    detected_language_code: str = ""

    def place(self, index: int) -> int:
        """Return where the part's text of that index is in the whole request."""
        return self.indices[index] if self.indices else index

    def told(self, translation: Translation) -> Translation:
        """Return a translation with the language that was detected, if it was."""
        code = self.detected_language_code
        return replace(translation, detected_language_code=code) if code else translation

    def name_in_whole(self, error: InvalidRequest) -> None:
        """Have an error about one of the part's texts name it by its place in the whole request."""
        if not self.indices:
            return
        match error.path:
            case ("texts" | "target_prefixes" as name, int(index)):
                error.path = Path(name, self.indices[index])


def parts_by_language(
    request: TranslationRequest, language_codes: Sequence[str], read: Sequence[ReadText] = ()
) -> list[Part]:
    """Split a request by its texts' languages, in the order of each language's first text.

    `language_codes` has one code per text, and `read`, which plain texts may leave out, what was read of it. Texts of
    no language that have no letters are in no part.

    Raises:
        InvalidRequest: a text has letters, and is in no language that can be translated into the target.
    """
    indices: dict[str, list[int]] = {}
    for index, code in enumerate(language_codes):
        if code != UNDETERMINED:
            indices.setdefault(code, []).append(index)
        elif any(map(str.isalpha, read[index].plain if read else request.texts[index])):
            raise InvalidRequest(
                "{path} is in no language that can be translated into {target} here",
                Path("texts", index),
                target=in_message(request.target_language_code),
                advice="give source_language_code",
            )
    return [
        Part(_part(request, code, chosen), tuple(chosen), _documents(read, chosen), code)
        for code, chosen in indices.items()
    ]


def read_texts(texts: Sequence[str], mime_type: MimeType) -> list[ReadText]:
    """Read texts, each once. It passes checkpoints."""
    return [_read(text, mime_type) for text in paced(texts, every=1)]


def _read(text: str, mime_type: MimeType) -> ReadText:
    if mime_type is MimeType.PLAIN:
        return ReadText(text)
    document = parse(text)
    return ReadText("\n".join(block.text for block in document.blocks), document)


def _documents(read: Sequence[ReadText], indices: Sequence[int]) -> tuple[HtmlDocument, ...]:
    found = [read[index].document for index in indices] if read else []
    return tuple(document for document in found if document is not None)


def _part(request: TranslationRequest, code: str, indices: Sequence[int]) -> TranslationRequest:
    prefixes = request.target_prefixes
    return replace(
        request,
        source_language_code=code,
        texts=tuple(request.texts[index] for index in indices),
        # Of a wrong number they stay as they are, to be refused with the part.
        target_prefixes=tuple(prefixes[i] for i in indices) if len(prefixes) == len(request.texts) else prefixes,
    )
