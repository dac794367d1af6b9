from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TranslateTextRequest(_message.Message):
    __slots__ = ("contents", "mime_type", "source_language_code", "target_language_code", "model", "glossary_config", "parent", "labels", "transliteration_config")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_CONFIG_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    TRANSLITERATION_CONFIG_FIELD_NUMBER: _ClassVar[int]
    contents: _containers.RepeatedScalarFieldContainer[str]
    mime_type: str
    source_language_code: str
    target_language_code: str
    model: str
    glossary_config: TranslateTextGlossaryConfig
    parent: str
    labels: _containers.ScalarMap[str, str]
    transliteration_config: TransliterationConfig
    def __init__(self, contents: _Optional[_Iterable[str]] = ..., mime_type: _Optional[str] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., model: _Optional[str] = ..., glossary_config: _Optional[_Union[TranslateTextGlossaryConfig, _Mapping]] = ..., parent: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., transliteration_config: _Optional[_Union[TransliterationConfig, _Mapping]] = ...) -> None: ...

class TranslateTextResponse(_message.Message):
    __slots__ = ("translations", "glossary_translations")
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[Translation]
    glossary_translations: _containers.RepeatedCompositeFieldContainer[Translation]
    def __init__(self, translations: _Optional[_Iterable[_Union[Translation, _Mapping]]] = ..., glossary_translations: _Optional[_Iterable[_Union[Translation, _Mapping]]] = ...) -> None: ...

class Translation(_message.Message):
    __slots__ = ("translated_text", "model", "glossary_config", "detected_language_code")
    TRANSLATED_TEXT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_CONFIG_FIELD_NUMBER: _ClassVar[int]
    DETECTED_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    translated_text: str
    model: str
    glossary_config: TranslateTextGlossaryConfig
    detected_language_code: str
    def __init__(self, translated_text: _Optional[str] = ..., model: _Optional[str] = ..., glossary_config: _Optional[_Union[TranslateTextGlossaryConfig, _Mapping]] = ..., detected_language_code: _Optional[str] = ...) -> None: ...

class TranslateTextGlossaryConfig(_message.Message):
    __slots__ = ("glossary", "ignore_case", "contextual_translation_enabled")
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CASE_FIELD_NUMBER: _ClassVar[int]
    CONTEXTUAL_TRANSLATION_ENABLED_FIELD_NUMBER: _ClassVar[int]
    glossary: str
    ignore_case: bool
    contextual_translation_enabled: bool
    def __init__(self, glossary: _Optional[str] = ..., ignore_case: _Optional[bool] = ..., contextual_translation_enabled: _Optional[bool] = ...) -> None: ...

class TransliterationConfig(_message.Message):
    __slots__ = ("enable_transliteration",)
    ENABLE_TRANSLITERATION_FIELD_NUMBER: _ClassVar[int]
    enable_transliteration: bool
    def __init__(self, enable_transliteration: _Optional[bool] = ...) -> None: ...

class DetectLanguageRequest(_message.Message):
    __slots__ = ("content", "mime_type", "model", "parent", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    content: str
    mime_type: str
    model: str
    parent: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, content: _Optional[str] = ..., mime_type: _Optional[str] = ..., model: _Optional[str] = ..., parent: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class DetectLanguageResponse(_message.Message):
    __slots__ = ("languages",)
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    languages: _containers.RepeatedCompositeFieldContainer[DetectedLanguage]
    def __init__(self, languages: _Optional[_Iterable[_Union[DetectedLanguage, _Mapping]]] = ...) -> None: ...

class DetectedLanguage(_message.Message):
    __slots__ = ("language_code", "confidence")
    LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    language_code: str
    confidence: float
    def __init__(self, language_code: _Optional[str] = ..., confidence: _Optional[float] = ...) -> None: ...

class GetSupportedLanguagesRequest(_message.Message):
    __slots__ = ("display_language_code", "model", "parent")
    DISPLAY_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    display_language_code: str
    model: str
    parent: str
    def __init__(self, display_language_code: _Optional[str] = ..., model: _Optional[str] = ..., parent: _Optional[str] = ...) -> None: ...

class SupportedLanguages(_message.Message):
    __slots__ = ("languages",)
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    languages: _containers.RepeatedCompositeFieldContainer[SupportedLanguage]
    def __init__(self, languages: _Optional[_Iterable[_Union[SupportedLanguage, _Mapping]]] = ...) -> None: ...

class SupportedLanguage(_message.Message):
    __slots__ = ("language_code", "display_name", "support_source", "support_target")
    LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_SOURCE_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_TARGET_FIELD_NUMBER: _ClassVar[int]
    language_code: str
    display_name: str
    support_source: bool
    support_target: bool
    def __init__(self, language_code: _Optional[str] = ..., display_name: _Optional[str] = ..., support_source: _Optional[bool] = ..., support_target: _Optional[bool] = ...) -> None: ...

class ListGlossariesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token", "filter")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    filter: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class ListGlossariesResponse(_message.Message):
    __slots__ = ("glossaries", "next_page_token")
    GLOSSARIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    glossaries: _containers.RepeatedCompositeFieldContainer[Glossary]
    next_page_token: str
    def __init__(self, glossaries: _Optional[_Iterable[_Union[Glossary, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetGlossaryRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Glossary(_message.Message):
    __slots__ = ("name", "language_pair", "entry_count", "display_name")
    class LanguageCodePair(_message.Message):
        __slots__ = ("source_language_code", "target_language_code")
        SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
        TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
        source_language_code: str
        target_language_code: str
        def __init__(self, source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_PAIR_FIELD_NUMBER: _ClassVar[int]
    ENTRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    language_pair: Glossary.LanguageCodePair
    entry_count: int
    display_name: str
    def __init__(self, name: _Optional[str] = ..., language_pair: _Optional[_Union[Glossary.LanguageCodePair, _Mapping]] = ..., entry_count: _Optional[int] = ..., display_name: _Optional[str] = ...) -> None: ...

class GetGlossaryEntryRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListGlossaryEntriesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListGlossaryEntriesResponse(_message.Message):
    __slots__ = ("glossary_entries", "next_page_token")
    GLOSSARY_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    glossary_entries: _containers.RepeatedCompositeFieldContainer[GlossaryEntry]
    next_page_token: str
    def __init__(self, glossary_entries: _Optional[_Iterable[_Union[GlossaryEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GlossaryEntry(_message.Message):
    __slots__ = ("name", "terms_pair")
    class GlossaryTermsPair(_message.Message):
        __slots__ = ("source_term", "target_term")
        SOURCE_TERM_FIELD_NUMBER: _ClassVar[int]
        TARGET_TERM_FIELD_NUMBER: _ClassVar[int]
        source_term: GlossaryTerm
        target_term: GlossaryTerm
        def __init__(self, source_term: _Optional[_Union[GlossaryTerm, _Mapping]] = ..., target_term: _Optional[_Union[GlossaryTerm, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    TERMS_PAIR_FIELD_NUMBER: _ClassVar[int]
    name: str
    terms_pair: GlossaryEntry.GlossaryTermsPair
    def __init__(self, name: _Optional[str] = ..., terms_pair: _Optional[_Union[GlossaryEntry.GlossaryTermsPair, _Mapping]] = ...) -> None: ...

class GlossaryTerm(_message.Message):
    __slots__ = ("language_code", "text")
    LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    language_code: str
    text: str
    def __init__(self, language_code: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...
