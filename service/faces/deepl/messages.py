"""DeepL's messages of translation: parameters and answers.

Source: https://developers.deepl.com/api-reference, and its OpenAPI document.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

from service.domain.call import TokenUsage
from service.domain.errors import InvalidRequest, Path, Quoted, Unimplemented
from service.domain.translation import MimeType, SplitSentences, Translation, TranslationRequest
from service.faces.http.application import HttpRequest
from service.faces.http.bodies import checked, form_of, json_of
from service.faces.http.bounded import AtMost, Checked, Listed, Name
from service.faces.http.forms import list_name
from service.faces.http.key_fields import KeyField
from service.faces.http.languages import ListedLanguage
from service.faces.http.multipart import fields_of_any_form
from service.text.detection import UNDETERMINED
from service.text.languages import display_name
from service.text.markup.xml import NotXml, TagRules, XmlAsHtml, as_html, with_untranslated

Document = dict[str, Any]

_SPLITTING: Mapping[str, SplitSentences] = MappingProxyType(
    {"0": SplitSentences.OFF, "1": SplitSentences.ON, "nonewlines": SplitSentences.NO_NEWLINES}
)
# As targets DeepL lists these variants, and its clients refuse the languages alone.
_VARIANTS: Mapping[str, Sequence[str]] = MappingProxyType({"en": ("en-GB", "en-US"), "pt": ("pt-BR", "pt-PT")})
_NO_LANGUAGE = "EN"  # DeepL names a language even where a text has none, such as a number
_MAX_TAGS = 1024

T = TypeVar("T")

_LISTS = frozenset(
    {"text", "glossary_ids", "ignore_tags", "splitting_tags", "non_splitting_tags", "custom_instructions"}
)
KEY = KeyField("auth_key")  # of older clients


def _names(value: object) -> object:
    """Split names at commas, which forms have and JSON may have."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return value
    if len(value) > _MAX_TAGS or not all(isinstance(each, str) for each in value):
        return value  # the check of its type reports it
    number = len(value) + sum(each.count(",") for each in value)
    if number > _MAX_TAGS:
        raise PydanticCustomError("too_long", "", {"actual_length": number, "max_length": _MAX_TAGS})
    return [part for each in value for name in each.split(",") if (part := name.strip())]


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Names = Annotated[list[Name], AtMost(_MAX_TAGS), BeforeValidator(_names)]


class NamesGlossary(BaseModel):
    """Parameters that may name a glossary."""

    glossary_id: Name | None = None
    glossary_ids: Names | None = None


class TranslateParameters(NamesGlossary):
    """Parameters of a translation. Unknown ones are ignored, as by DeepL."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())

    text: Listed
    target_lang: Name
    source_lang: Name | None = None
    context: Annotated[str, Checked("nothing: it has no effect")] | None = None
    split_sentences: Annotated[Literal["0", "1", "nonewlines"] | None, BeforeValidator(_as_text)] = None
    preserve_formatting: bool | None = None
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] | None = None
    model_type: Literal["quality_optimized", "prefer_quality_optimized", "latency_optimized"] | None = None
    show_billed_characters: bool | None = None
    tag_handling: Literal["xml", "html", ""] | None = None
    tag_handling_version: Literal["v1", "v2"] | None = None
    outline_detection: bool | None = None
    ignore_tags: Names | None = None
    splitting_tags: Names | None = None
    non_splitting_tags: Names | None = None
    style_id: Name | None = None
    custom_instructions: Listed | None = None
    translation_memory_id: Name | None = None


class LanguagesParameters(BaseModel):
    """The kind of languages to list."""

    type: Literal["source", "target"] = "source"


class LanguagesOfResourceParameters(BaseModel):
    """Of which part of the API to list the languages."""

    resource: Literal["translate_text", "glossary"]


def check_parameters(parameters: TranslateParameters) -> None:
    """Check combinations; raise `InvalidRequest` for invalid ones, `Unimplemented` for those only DeepL supports."""
    check_formality(parameters.formality)
    for name, value in (
        ("style_id", parameters.style_id),
        ("custom_instructions", parameters.custom_instructions),
        ("translation_memory_id", parameters.translation_memory_id),
    ):
        if value:
            raise Unimplemented(f"'{name}' is not supported by this server", advice="leave it out")
    if glossary_of(parameters) and not parameters.source_lang:
        raise InvalidRequest("Use of a glossary requires the source_lang parameter to be specified")
    if parameters.ignore_tags and not parameters.tag_handling:
        raise InvalidRequest("{path} is given without tag_handling", Path("ignore_tags"), advice="add tag_handling=xml")


def check_formality(formality: str | None) -> None:
    """Raise `InvalidRequest` for a formality that would need to have an effect."""
    if formality in ("more", "less"):
        raise InvalidRequest(
            "'formality' is not supported for given 'target_lang'",
            Path("formality"),
            advice=f"leave it out, or use prefer_{formality}, which has no effect where it is not supported",
        )


def glossary_of(parameters: NamesGlossary) -> str:
    """Return a glossary's id, or an empty text; raise `InvalidRequest` if named twice, `Unimplemented` for several."""
    several = parameters.glossary_ids or []
    if parameters.glossary_id and several:
        raise InvalidRequest("{path} and glossary_id are both given", Path("glossary_ids"), advice="give one of them")
    if len(several) > 1:
        raise Unimplemented("this server uses one glossary for a call", advice="give one, with the entries of all")
    return parameters.glossary_id or "".join(several)


@dataclass(frozen=True, slots=True)
class MarkedTexts:
    """Texts in a form that the translator knows, and the conversion of its translations."""

    texts: tuple[str, ...]
    mime_type: MimeType
    _documents: tuple[XmlAsHtml, ...] = ()
    _added: tuple[str, ...] = ()

    def restored(self, translations: Sequence[str]) -> list[str]:
        if self._documents:
            pairs = zip(self._documents, translations, strict=True)
            return [document.restored(each) for document, each in pairs]
        if self._added:
            return [each.replace(added, "") for each, added in zip(translations, self._added, strict=True)]
        return list(translations)


def marked_texts(parameters: TranslateParameters) -> MarkedTexts:
    """Return the texts with their tags handled; raise `InvalidRequest` for malformed XML. Passes checkpoints."""
    texts = tuple(parameters.text)
    ignored = frozenset(parameters.ignore_tags or ())
    if not parameters.tag_handling:
        return MarkedTexts(texts, MimeType.PLAIN)
    if parameters.tag_handling == "html":
        if not ignored:
            return MarkedTexts(texts, MimeType.HTML)
        pairs = [with_untranslated(each, ignored) for each in texts]
        return MarkedTexts(tuple(html for html, _ in pairs), MimeType.HTML, _added=tuple(added for _, added in pairs))
    rules = TagRules(
        ignored,
        frozenset(parameters.splitting_tags or ()),
        frozenset(parameters.non_splitting_tags or ()),
        finds_structure=parameters.outline_detection is not False,
    )
    documents = []
    for index, text in enumerate(texts):
        try:
            documents.append(as_html(text, rules))
        except NotXml as error:
            raise InvalidRequest(
                "{path} is not well-formed XML: {reason}",
                Path("texts", index),
                reason=Quoted(str(error)),
                advice="correct it, or leave out tag_handling",
            ) from error
    return MarkedTexts(tuple(each.html for each in documents), MimeType.HTML, tuple(documents))


def request_from(
    parameters: TranslateParameters, marked: MarkedTexts, glossary: str, deadline: float
) -> TranslationRequest:
    """Return the caller's request; `glossary` is the name here, `deadline` is on `time.monotonic()`'s clock."""
    default = "nonewlines" if parameters.tag_handling == "html" else "1"
    return TranslationRequest(
        texts=marked.texts,
        source_language_code=parameters.source_lang or "",
        target_language_code=parameters.target_lang,
        deadline_seconds=deadline,
        mime_type=marked.mime_type,
        split_sentences=_SPLITTING[parameters.split_sentences or default],
        preserve_formatting=bool(parameters.preserve_formatting),
        glossary=glossary,
    )


def translations_document(
    parameters: TranslateParameters, texts: Iterable[str], translations: Iterable[Translation]
) -> Document:
    given = parameters.source_lang or ""
    extra: Document = {}
    if parameters.model_type:
        extra["model_type_used"] = parameters.model_type.removeprefix("prefer_")
    if parameters.tag_handling:
        extra["tag_handling_version"] = parameters.tag_handling_version or "v2"
    entries = []
    for source, text, translation in zip(parameters.text, texts, translations, strict=True):
        language = (
            _NO_LANGUAGE
            if translation.detected_language_code == UNDETERMINED
            else (given or translation.detected_language_code)
        )
        billed = {"billed_characters": len(source)} if parameters.show_billed_characters else {}
        entries.append({"detected_source_language": language.upper(), "text": text, **billed, **extra})
    return {"translations": entries}


def languages_document(languages: Iterable[ListedLanguage], kind: str) -> list[Document]:
    if kind == "source":
        return [{"language": each.code.upper(), "name": each.name} for each in languages if each.targets]
    return [
        {"language": code.upper(), "name": name, "supports_formality": False}
        for code, name in _listed_targets(languages)
    ]


def languages_of_resource_document(languages: Sequence[ListedLanguage], resource: str) -> list[Document]:
    sources = {each.code: each.name for each in languages if each.targets}
    if resource == "translate_text":
        targets = dict(_listed_targets(languages))
        features = {name: {"status": "stable"} for name in ("glossary", "tag_handling")}
    else:
        names = {each.code: each.name for each in languages}
        targets = {code: names[code] for each in languages for code in each.targets}
        features = {}
    return [
        {
            "lang": code,
            "name": (sources | targets)[code],
            "usable_as_source": code in sources,
            "usable_as_target": code in targets,
            "status": "stable",
            "features": features,
        }
        for code in sorted(sources | targets)
    ]


def usage_document(usage: TokenUsage) -> Document:
    """Return a key's usage in tokens: those of sources and translations within the last minute."""
    limit = usage.quota or 1_000_000_000_000  # DeepL's own number for keys without a limit
    return {
        "character_count": usage.num_tokens,
        "character_limit": limit,
        "api_key_character_count": usage.num_tokens,
        "api_key_character_limit": limit,
    }


def _listed_targets(languages: Iterable[ListedLanguage]) -> list[tuple[str, str]]:
    """Return the codes and names of targets, with variants in place of the languages that DeepL lists by variants."""
    known = list(languages)
    names = {each.code: each.name for each in known}
    codes = {target for each in known for target in each.targets}
    found = {
        code: names[each] if code == each else display_name(code, "en")
        for each in codes
        for code in _VARIANTS.get(each, (each,))
    }
    return sorted(found.items())


def parameters_in(request: HttpRequest, kind: type[T]) -> T:
    """Return a call's parameters, repeated form fields as lists, else the first; raise `InvalidRequest` if wrong."""
    return checked(_document(request), kind)


def _document(request: HttpRequest) -> dict[str, Any]:
    of_form = fields_of_any_form(request) if request.body or request.form else []
    document = json_of(request, dict[str, Any]) if of_form is None else {}
    in_fields: dict[str, Any] = {}
    for given, value in (*(of_form or ()), *form_of(request.query)):
        name = list_name(given) or given
        if name in _LISTS:
            in_fields.setdefault(name, []).append(value)
        else:
            in_fields.setdefault(name, value)
    return in_fields | document
