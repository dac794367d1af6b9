"""Calls without a source language: one call is split into several, each with the texts of one language."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from service.domain.checkpoint import paced
from service.domain.errors import InvalidRequest, Path
from service.domain.translation import (
    DetectedLanguage,
    FinishReason,
    Hypothesis,
    MimeType,
    Translation,
    TranslationRequest,
)
from service.text.detection import UNDETERMINED, LanguageDetector
from service.text.languages import in_message
from service.text.markup import HtmlDocument, parse


class ReadText(NamedTuple):
    """A text without markup, for language detection, and its parsed document if it is HTML."""

    plain: str
    document: HtmlDocument | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A request for the texts of one language, and their indices in the whole request.

    Without `indices` it is the whole request. `documents` are the parsed texts if they are HTML and were parsed for
    detection; `detected_language_code` is empty if the caller gave the language.
    """

    request: TranslationRequest
    indices: tuple[int, ...] = ()
    documents: tuple[HtmlDocument, ...] = ()
    detected_language_code: str = ""

    def place(self, index: int) -> int:
        """Return the index in the whole request of the part's text at `index`."""
        return self.indices[index] if self.indices else index

    def name_in_whole(self, error: InvalidRequest) -> None:
        """Make an error about one of the part's texts refer to its index in the whole request."""
        if not self.indices:
            return
        match error.path:
            case ("texts" | "target_prefixes" as name, int(index)):
                error.path = Path(name, self.indices[index])


def detect_languages(texts: Sequence[str], mime_type: MimeType) -> list[tuple[DetectedLanguage, ...]]:
    """Return the languages that each text may be in, best first, of all that can be detected. Passes checkpoints."""
    detector = LanguageDetector()
    return [detector.detect(each.plain) for each in paced(read_texts(texts, mime_type), every=4)]


def parts_by_detection(request: TranslationRequest, sources: Sequence[str]) -> list[Part]:
    """Split a request by its texts' languages, detected among `sources`: `parts_by_language`. Passes checkpoints."""
    detector = LanguageDetector(sources)
    read = read_texts(request.texts, request.mime_type)
    codes = [detector.detect(each.plain)[0].language_code for each in paced(read, every=4)]
    return parts_by_language(request, codes, read)


def parts_by_language(
    request: TranslationRequest, language_codes: Sequence[str], read: Sequence[ReadText] = ()
) -> list[Part]:
    """Split a request by its texts' languages, in the order of each language's first text.

    `language_codes` has one code per text, and `read` its read text; plain texts may omit it. Texts without a language
    and without letters are in no part.

    Raises:
        InvalidRequest: a text has letters, but is in no language that can be translated into the target.
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


def joined(
    request: TranslationRequest, parts: Sequence[Part], translations: Sequence[Sequence[Translation]]
) -> tuple[Translation, ...]:
    """Return the answer to each text of the whole request, from the translations of each part's texts."""
    found = list(map(undetermined, request.texts))
    for part, of_part in zip(parts, translations, strict=True):
        for index, translation in zip(part.indices, of_part, strict=True):
            found[index] = replace(translation, detected_language_code=part.detected_language_code)
    return tuple(found)


def undetermined(text: str) -> Translation:
    """Return the answer to a text without letters, which never reaches a model."""
    unchanged = Hypothesis(text)
    return Translation(text, (unchanged,), FinishReason.STOP, 0, detected_language_code=UNDETERMINED)


def read_texts(texts: Sequence[str], mime_type: MimeType) -> list[ReadText]:
    """Read texts, parsing HTML. Passes checkpoints."""
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
        # A wrong number of prefixes is kept, to be rejected with the part.
        target_prefixes=tuple(prefixes[i] for i in indices) if len(prefixes) == len(request.texts) else prefixes,
    )
