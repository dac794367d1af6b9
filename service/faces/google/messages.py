"""Conversion between Google Cloud Translation v3 protobuf messages and domain types."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from service.domain.errors import (
    InvalidRequest,
    NotFound,
    PairNotFound,
    Path,
    Public,
    ServiceError,
    Unimplemented,
    listed,
)
from service.domain.translation import (
    MAX_TEXTS,
    DetectedLanguage,
    FinishReason,
    MimeType,
    Translation,
    TranslationRequest,
)
from service.faces.fields import check_code, mime_type_from
from service.faces.google.names import check_parent, entry_name, glossary_name, glossary_of, model_of
from service.faces.grpc.counts import checked_fields
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from service.faces.http.answers import spell
from service.models.loaded_model import LoadedModel
from service.text.glossary import Glossary
from service.text.languages import display_name, folded, in_message, language_of
from service.translation.checks import MAX_LABEL_CHARACTERS

MAX_PAGE_SIZE = 1000

_LABELS = f"up to {MAX_LABEL_CHARACTERS} lower case letters, digits, '_' and '-'"
_CONDITION = re.compile(r"(src|tgt)=(\S+)")
FIELDS = {"texts": "contents", "glossary": "glossary_config.glossary"}  # where Google's names differ from ours

T = TypeVar("T")


def request_from_pb(message: pb.TranslateTextRequest, deadline_seconds: float) -> TranslationRequest:
    """Return the caller's request; `deadline_seconds` is on the clock of `time.monotonic()`.

    Raise `InvalidRequest` if a field of Google's own is wrong, `Unimplemented` for an unsupported option.
    """
    check_parent(message.parent)
    checked_fields(message)
    if not message.contents:
        raise InvalidRequest("{path} is empty", Path("contents"), advice=f"give 1 to {MAX_TEXTS} texts")
    if message.transliteration_config.enable_transliteration:
        raise Unimplemented("transliteration_config is not supported by this server", advice="leave it out")
    if message.glossary_config.contextual_translation_enabled:
        raise Unimplemented(
            "glossary_config.contextual_translation_enabled is not supported by this server", advice="leave it out"
        )
    glossary = ""
    if message.HasField("glossary_config"):
        glossary = glossary_of(message.glossary_config.glossary, "glossary_config.glossary")
    return TranslationRequest(
        texts=tuple(message.contents),
        source_language_code=message.source_language_code,
        target_language_code=message.target_language_code,
        model=model_of(message.model),
        deadline_seconds=deadline_seconds,
        mime_type=mime_type_from_pb(message.mime_type),
        glossary=glossary,
        labels=labels_from_pb(message.labels),
    )


def mime_type_from_pb(name: str) -> MimeType:
    """Return the MIME type of the texts, HTML by default; raises as `mime_type_from`."""
    return mime_type_from(name or MimeType.HTML.value)


def labels_from_pb(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels, sorted by key; raise `InvalidRequest` for characters that are not allowed, or too many."""
    for key, value in labels.items():
        if not _is_label(key) or not key[:1].isalpha():
            raise InvalidRequest(
                "{path} has the key {key}; allowed: {allowed_keys}",
                Path("labels"),
                key=key,
                allowed_keys=Public(f"{_LABELS} beginning with a letter"),
            )
        if not _is_label(value):
            path = Path(f"labels[{key}]")
            raise InvalidRequest("labels[{key}] is {value}", path, key=key, value=value, allowed=_LABELS)
    return tuple(sorted(labels.items()))


def response_to_pb(
    request: pb.TranslateTextRequest, translations: Iterable[Translation], with_glossary: Iterable[Translation] = ()
) -> pb.TranslateTextResponse:
    return pb.TranslateTextResponse(
        translations=[_translation_to_pb(request, translation) for translation in translations],
        glossary_translations=[_translation_to_pb(request, translation, True) for translation in with_glossary],
    )


def finish_reasons(*answers: Sequence[Translation]) -> str:
    """Return the texts whose translation did not end normally, by reason, such as `length=0,7;ratio=3`.

    The first such answer to a text counts. A list is short: trailers above 8 KiB are lost together with the answer.
    """
    indices: dict[FinishReason, list[int]] = {}
    for index, of_one_text in enumerate(zip(*answers, strict=True)):
        for translation in of_one_text:
            if translation.finish_reason is not FinishReason.STOP:
                indices.setdefault(translation.finish_reason, []).append(index)
                break
    return ";".join(f"{reason.value}={','.join(map(str, found))}" for reason, found in indices.items())


def detected_to_pb(languages: Sequence[DetectedLanguage]) -> pb.DetectLanguageResponse:
    best = languages[0]
    language = pb.DetectedLanguage(language_code=best.language_code, confidence=best.confidence)
    return pb.DetectLanguageResponse(languages=[language])


def languages_to_pb(models: Iterable[LoadedModel], display_language_code: str) -> pb.SupportedLanguages:
    """Return languages, named in the display language, if any; raise `InvalidRequest` if that is no code."""
    if display_language_code:
        check_code("display_language_code", display_language_code)
    sources: set[str] = set()
    targets: set[str] = set()
    for model in models:
        sources.update(source for source, _ in model.pairs.listed)
        targets.update(target for _, target in model.pairs.listed)
        sources.update(model.pairs.any_to_any)
        targets.update(model.pairs.any_to_any)
    return pb.SupportedLanguages(
        languages=[
            pb.SupportedLanguage(
                language_code=code,
                display_name=display_name(code, display_language_code) if display_language_code else "",
                support_source=code in sources,
                support_target=code in targets,
            )
            for code in sorted(sources | targets)
        ]
    )


def filtered(glossaries: Iterable[Glossary], conditions: str) -> list[Glossary]:
    """Return glossaries that meet conditions such as `src=en AND tgt=de`; raise `InvalidRequest` for other forms."""
    wanted = {}
    for condition in conditions.split(" AND ") if conditions else ():
        found = _CONDITION.fullmatch(condition.strip())
        if found is None:
            expected = "expected conditions such as 'src=en AND tgt=de'"
            raise InvalidRequest("{path} is {filter}", Path("filter"), filter=conditions, advice=expected)
        wanted[found[1]] = folded(found[2])
    return [
        glossary
        for glossary in glossaries
        if wanted.get("src") in (None, folded(glossary.source_language_code))
        and wanted.get("tgt") in (None, folded(glossary.target_language_code))
    ]


def page(items: Sequence[T], page_size: int, page_token: str) -> tuple[Sequence[T], str]:
    """Return a page's items, and the next page's token or none; raise `InvalidRequest` for a wrong size or token."""
    if page_size < 0:
        raise InvalidRequest(
            "{path} is {size}",
            Path("page_size"),
            size=page_size,
            allowed=f"0 to {MAX_PAGE_SIZE}; 0 means the maximum",
        )
    if page_token and not re.fullmatch("[0-9]{1,9}", page_token):
        raise InvalidRequest(
            "{path} is {token}",
            Path("page_token"),
            token=page_token,
            advice="give the next_page_token of the page before, or none",
        )
    start = int(page_token or 0)
    end = start + min(page_size or MAX_PAGE_SIZE, MAX_PAGE_SIZE)
    return items[start:end], str(end) if end < len(items) else ""


def glossary_id(glossary: Glossary) -> str:
    """Return the last part of a glossary's full name: `products.en-pt_BR`, its file name without the extension."""
    codes = (glossary.source_language_code, glossary.target_language_code)
    source, target = (code.replace("-", "_") for code in codes)
    return f"{glossary.name}.{source}-{target}"


def fitting(glossaries: Sequence[Glossary], request: TranslationRequest) -> Glossary:
    """Return the first glossary for the languages; raise `InvalidRequest` without one, or a source language."""
    if not request.source_language_code:
        path = Path("source_language_code")
        raise InvalidRequest("{path} is empty", path, advice="a call with a glossary takes one")
    languages = [language_of(code) for code in (request.source_language_code, request.target_language_code)]
    for glossary in glossaries:
        if [language_of(glossary.source_language_code), language_of(glossary.target_language_code)] == languages:
            return glossary
    raise InvalidRequest(
        "{path} is {glossaries}; the call is from {source} into {target}",
        Path("glossary"),
        glossaries=Public(listed(map(glossary_id, glossaries))),
        source=in_message(request.source_language_code),
        target=in_message(request.target_language_code),
    )


def glossary_to_pb(glossary: Glossary, parent: str) -> pb.Glossary:
    """Return a glossary under the given parent; every parent has all glossaries."""
    return pb.Glossary(
        name=glossary_name(parent, glossary_id(glossary)),
        language_pair=pb.Glossary.LanguageCodePair(
            source_language_code=glossary.source_language_code, target_language_code=glossary.target_language_code
        ),
        entry_count=len(glossary.terms),
        display_name=glossary.name,
    )


def entry_to_pb(glossary: Glossary, full_name: str, number: int) -> pb.GlossaryEntry:
    """Return an entry, counted from 1, of the glossary that the caller refers to as `full_name`."""
    term = glossary.terms[number - 1]
    return pb.GlossaryEntry(
        name=entry_name(full_name, number),
        terms_pair=pb.GlossaryEntry.GlossaryTermsPair(
            source_term=pb.GlossaryTerm(language_code=glossary.source_language_code, text=term.source),
            target_term=pb.GlossaryTerm(
                language_code=glossary.target_language_code, text=term.source if term.target is None else term.target
            ),
        ),
    )


@contextmanager
def in_googles_words(fields: Mapping[str, str], model: str) -> Iterator[None]:
    """Raise errors of the block in Google's terms: names of `fields`, the model's name as given, Google's status."""
    try:
        yield
    except ServiceError as error:
        reported = error.as_invalid() if isinstance(error, PairNotFound) else error
        if isinstance(reported, NotFound) and reported.resource_type == "model":
            reported.resource_name = model
        spell(reported, fields)
        raise reported from error


def _is_label(text: str) -> bool:
    allowed = all(letter in "_-" or (letter.isalnum() and letter == letter.lower()) for letter in text)
    return allowed and len(text) <= MAX_LABEL_CHARACTERS


def _translation_to_pb(
    request: pb.TranslateTextRequest, translation: Translation, has_glossary: bool = False
) -> pb.Translation:
    return pb.Translation(
        translated_text=translation.text,
        model=request.model,
        detected_language_code=translation.detected_language_code,
        glossary_config=request.glossary_config if has_glossary else None,
    )
