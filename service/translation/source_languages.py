"""Calls without a source language: one call is split into several, each with the texts of one language."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from service.domain.checkpoint import paced
from service.domain.errors import InvalidRequest, Path, Public, listed
from service.domain.translation import (
    DetectedLanguage,
    FinishReason,
    Flag,
    Hypothesis,
    MimeType,
    Segment,
    Translation,
    TranslationRequest,
)
from service.text.detection import UNDETERMINED, language_detector, source_detector
from service.text.languages import in_message, is_same
from service.text.markup import HtmlDocument, parse


class ReadText(NamedTuple):
    """A text without markup, for language detection, and its parsed document if it is HTML."""

    plain: str
    document: HtmlDocument | None = None


class Part(NamedTuple):
    """A request for the texts of one language, and their `indices` in the whole request; without, it is all of it.

    `documents` are the texts if they are HTML and were parsed for detection; `detected_language_code` is empty if the
    caller gave the language. The texts are not translated if `is_kept`.
    """

    request: TranslationRequest
    indices: tuple[int, ...] = ()
    documents: tuple[HtmlDocument, ...] = ()
    detected_language_code: str = ""
    is_kept: bool = False

    def place(self, index: int) -> int:
        return self.indices[index] if self.indices else index

    def name_in_whole(self, error: InvalidRequest) -> None:
        """Make an error about one of the part's texts refer to its index in the whole request."""
        if not self.indices:
            return
        match error.path:
            case ("texts" | "target_prefixes" as name, int(index)):
                error.path = Path(name, self.indices[index])


def detect_languages(
    texts: Sequence[str], mime_type: MimeType, served: Sequence[str]
) -> list[tuple[DetectedLanguage, ...]]:
    """Return the languages that each text may be in, best first: `served` ones, and all others. Passes checkpoints."""
    detector = language_detector(tuple(served))
    return [detector.detect(each.plain) for each in paced(read_texts(texts, mime_type), every=4)]


def parts_by_detection(request: TranslationRequest, sources: Sequence[str]) -> list[Part]:
    """Split a request by its texts' languages (`parts_by_language`). Passes checkpoints."""
    detector = source_detector(tuple(sources), request.target_language_code)
    read = read_texts(request.texts, request.mime_type)
    codes = [detector.detect(each.plain) for each in paced(read, every=4)]
    return parts_by_language(request, codes, sources, read)


def parts_by_language(
    request: TranslationRequest, language_codes: Sequence[str], sources: Sequence[str], read: Sequence[ReadText] = ()
) -> list[Part]:
    """Split a request by its texts' languages, in the order of each language's first text.

    `language_codes` and `read` have an entry per text, but plain texts may omit `read`. `sources` can be translated
    into the target. Texts without a language and without letters are in no part.
    """
    indices: dict[str, list[int]] = {}
    served = {*sources, *(code for code in set(language_codes) if is_same(code, request.target_language_code))}
    for index, code in enumerate(language_codes):
        if code == UNDETERMINED and not any(map(str.isalpha, read[index].plain if read else request.texts[index])):
            continue
        if code not in served and not request.keeps_other_languages:
            raise _not_served(request, Path("texts", index), code, sources)
        indices.setdefault(code, []).append(index)
    return [
        Part(_part(request, code, chosen), tuple(chosen), _documents(read, chosen), code, code not in served)
        for code, chosen in indices.items()
    ]


def _not_served(request: TranslationRequest, path: Path, code: str, sources: Sequence[str]) -> InvalidRequest:
    return InvalidRequest(
        "{path} is in none of the languages that can be translated into {target} here: {sources}"
        if code == UNDETERMINED
        else "{path} seems to be in {language}; languages that can be translated into {target} here: {sources}",
        path,
        language=in_message(code),
        target=in_message(request.target_language_code),
        sources=Public(listed(sources)),
        advice="give source_language_code if it is in one of these",
    )


def joined(
    request: TranslationRequest, parts: Sequence[Part], translations: Sequence[Sequence[Translation]]
) -> tuple[Translation, ...]:
    found = list(map(undetermined, request.texts))
    for part, of_part in zip(parts, translations, strict=True):
        for index, translation in zip(part.indices, of_part, strict=True):
            found[index] = translation._replace(detected_language_code=part.detected_language_code)
    return tuple(found)


def undetermined(text: str) -> Translation:
    """Return the answer to a text without letters, which never reaches a model."""
    return _unchanged(text)._replace(detected_language_code=UNDETERMINED)


def unchanged(part: Part) -> tuple[Translation, ...]:
    """Return the answers to the texts of a part that are not to be translated, and their flags. Passes checkpoints."""
    flag = Flag.OTHER_LANGUAGE if part.is_kept else Flag.TARGET_LANGUAGE
    texts, mime_type = part.request.texts, part.request.mime_type
    documents: Iterable[HtmlDocument | None] = part.documents or (None for _ in texts)
    if mime_type is not MimeType.PLAIN and not part.documents:
        documents = (each.document for each in read_texts(texts, mime_type))
    found = []
    for text, document in zip(texts, documents, strict=True):
        end = len(text) if document is None else sum(len(block.text) for block in document.blocks)
        segments = (Segment(0, end, 0, end, FinishReason.STOP, 0, 0, (flag,)),)
        answer = _unchanged(text)._replace(segments=segments, detected_language_code=part.detected_language_code)
        found.append(answer)
    return tuple(found)


def _unchanged(text: str) -> Translation:
    return Translation(text, (Hypothesis(text),), FinishReason.STOP, 0)


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
