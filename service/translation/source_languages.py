"""Calls that leave the source language out: one call becomes several, each with the texts of one language."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.domain.checkpoint import paced
from service.domain.errors import InvalidRequest, Path
from service.domain.translation import MimeType, TranslationRequest
from service.text.detection import UNDETERMINED
from service.text.languages import in_message
from service.text.markup import parse


@dataclass(frozen=True, slots=True)
class Part:
    """A request for the texts of one language, and where each of them is in the whole request."""

    request: TranslationRequest
    indices: tuple[int, ...]

    def name_in_whole(self, error: InvalidRequest) -> None:
        """Have an error about one of the part's texts name it by its place in the whole request."""
        match error.path:
            case ("texts" | "target_prefixes" as name, int(index)):
                error.path = Path(name, self.indices[index])


def parts_by_language(request: TranslationRequest, language_codes: Sequence[str]) -> list[Part]:
    """Split a request by its texts' languages, in the order of each language's first text.

    `language_codes` has one code per text. Texts of no language that have no letters are in no part.

    Raises:
        InvalidRequest: a text has letters, and is in no language that can be translated into the target.
    """
    indices: dict[str, list[int]] = {}
    for index, code in enumerate(language_codes):
        if code != UNDETERMINED:
            indices.setdefault(code, []).append(index)
        elif any(character.isalpha() for character in _plain(request.texts[index], request.mime_type)):
            raise InvalidRequest(
                "{path} is in no language that can be translated into {target} here",
                Path("texts", index),
                target=in_message(request.target_language_code),
                advice="give source_language_code",
            )
    return [Part(_part(request, code, chosen), tuple(chosen)) for code, chosen in indices.items()]


def plain_texts(texts: Sequence[str], mime_type: MimeType) -> list[str]:
    """Texts without markup, for those who look at the language only."""
    return [_plain(text, mime_type) for text in paced(texts, every=1)]


def _plain(text: str, mime_type: MimeType) -> str:
    return text if mime_type is MimeType.PLAIN else "\n".join(block.text for block in parse(text).blocks)


def _part(request: TranslationRequest, code: str, indices: Sequence[int]) -> TranslationRequest:
    prefixes = request.target_prefixes
    return replace(
        request,
        source_language_code=code,
        texts=tuple(request.texts[index] for index in indices),
        # Of a wrong number they stay as they are, to be refused with the part.
        target_prefixes=tuple(prefixes[i] for i in indices) if len(prefixes) == len(request.texts) else prefixes,
    )
