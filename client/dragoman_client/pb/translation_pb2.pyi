from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SplitSentences(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SPLIT_SENTENCES_UNSPECIFIED: _ClassVar[SplitSentences]
    SPLIT_SENTENCES_OFF: _ClassVar[SplitSentences]
    SPLIT_SENTENCES_ON: _ClassVar[SplitSentences]
    SPLIT_SENTENCES_NO_NEWLINES: _ClassVar[SplitSentences]

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_LOW: _ClassVar[Priority]
    PRIORITY_NORMAL: _ClassVar[Priority]
    PRIORITY_HIGH: _ClassVar[Priority]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_STOP: _ClassVar[FinishReason]
    FINISH_REASON_LENGTH: _ClassVar[FinishReason]
    FINISH_REASON_RATIO: _ClassVar[FinishReason]
    FINISH_REASON_REPETITION: _ClassVar[FinishReason]
    FINISH_REASON_CANCELLED: _ClassVar[FinishReason]
    FINISH_REASON_DEADLINE: _ClassVar[FinishReason]

class Flag(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FLAG_UNSPECIFIED: _ClassVar[Flag]
    FLAG_PLACEHOLDER: _ClassVar[Flag]
    FLAG_TERM: _ClassVar[Flag]
    FLAG_UNKNOWN: _ClassVar[Flag]
    FLAG_EMPTY: _ClassVar[Flag]
    FLAG_NUMBERS: _ClassVar[Flag]
    FLAG_TARGET_LANGUAGE: _ClassVar[Flag]
    FLAG_OTHER_LANGUAGE: _ClassVar[Flag]
SPLIT_SENTENCES_UNSPECIFIED: SplitSentences
SPLIT_SENTENCES_OFF: SplitSentences
SPLIT_SENTENCES_ON: SplitSentences
SPLIT_SENTENCES_NO_NEWLINES: SplitSentences
PRIORITY_UNSPECIFIED: Priority
PRIORITY_LOW: Priority
PRIORITY_NORMAL: Priority
PRIORITY_HIGH: Priority
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_STOP: FinishReason
FINISH_REASON_LENGTH: FinishReason
FINISH_REASON_RATIO: FinishReason
FINISH_REASON_REPETITION: FinishReason
FINISH_REASON_CANCELLED: FinishReason
FINISH_REASON_DEADLINE: FinishReason
FLAG_UNSPECIFIED: Flag
FLAG_PLACEHOLDER: Flag
FLAG_TERM: Flag
FLAG_UNKNOWN: Flag
FLAG_EMPTY: Flag
FLAG_NUMBERS: Flag
FLAG_TARGET_LANGUAGE: Flag
FLAG_OTHER_LANGUAGE: Flag

class TranslateRequest(_message.Message):
    __slots__ = ("texts", "source_language_code", "target_language_code", "model", "options", "mime_type", "split_sentences", "preserve_formatting", "glossary", "terms", "target_prefixes", "return_alignments", "strict", "labels", "priority", "model_version", "placeholders", "keep_other_languages")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    SPLIT_SENTENCES_FIELD_NUMBER: _ClassVar[int]
    PRESERVE_FORMATTING_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    TARGET_PREFIXES_FIELD_NUMBER: _ClassVar[int]
    RETURN_ALIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    STRICT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    PLACEHOLDERS_FIELD_NUMBER: _ClassVar[int]
    KEEP_OTHER_LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    source_language_code: str
    target_language_code: str
    model: str
    options: DecodingOptions
    mime_type: str
    split_sentences: SplitSentences
    preserve_formatting: bool
    glossary: str
    terms: _containers.RepeatedCompositeFieldContainer[Term]
    target_prefixes: _containers.RepeatedScalarFieldContainer[str]
    return_alignments: bool
    strict: bool
    labels: _containers.ScalarMap[str, str]
    priority: Priority
    model_version: str
    placeholders: _containers.RepeatedCompositeFieldContainer[Placeholder]
    keep_other_languages: bool
    def __init__(self, texts: _Optional[_Iterable[str]] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., model: _Optional[str] = ..., options: _Optional[_Union[DecodingOptions, _Mapping]] = ..., mime_type: _Optional[str] = ..., split_sentences: _Optional[_Union[SplitSentences, str]] = ..., preserve_formatting: _Optional[bool] = ..., glossary: _Optional[str] = ..., terms: _Optional[_Iterable[_Union[Term, _Mapping]]] = ..., target_prefixes: _Optional[_Iterable[str]] = ..., return_alignments: _Optional[bool] = ..., strict: _Optional[bool] = ..., labels: _Optional[_Mapping[str, str]] = ..., priority: _Optional[_Union[Priority, str]] = ..., model_version: _Optional[str] = ..., placeholders: _Optional[_Iterable[_Union[Placeholder, _Mapping]]] = ..., keep_other_languages: _Optional[bool] = ...) -> None: ...

class Placeholder(_message.Message):
    __slots__ = ("pattern", "start", "end")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    pattern: str
    start: str
    end: str
    def __init__(self, pattern: _Optional[str] = ..., start: _Optional[str] = ..., end: _Optional[str] = ...) -> None: ...

class Term(_message.Message):
    __slots__ = ("source", "target", "case_sensitive")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    CASE_SENSITIVE_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    case_sensitive: bool
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ..., case_sensitive: _Optional[bool] = ...) -> None: ...

class DecodingOptions(_message.Message):
    __slots__ = ("beam_size", "length_penalty", "num_hypotheses", "max_output_tokens", "return_scores", "temperature", "top_k", "top_p", "seed", "max_repeats", "max_length_ratio", "repetition_penalty", "no_repeat_ngram_size", "min_output_tokens", "check_numbers")
    BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    NUM_HYPOTHESES_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    RETURN_SCORES_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    MAX_REPEATS_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_RATIO_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    NO_REPEAT_NGRAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    MIN_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CHECK_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    beam_size: int
    length_penalty: float
    num_hypotheses: int
    max_output_tokens: int
    return_scores: bool
    temperature: float
    top_k: int
    top_p: float
    seed: int
    max_repeats: int
    max_length_ratio: float
    repetition_penalty: float
    no_repeat_ngram_size: int
    min_output_tokens: int
    check_numbers: bool
    def __init__(self, beam_size: _Optional[int] = ..., length_penalty: _Optional[float] = ..., num_hypotheses: _Optional[int] = ..., max_output_tokens: _Optional[int] = ..., return_scores: _Optional[bool] = ..., temperature: _Optional[float] = ..., top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., seed: _Optional[int] = ..., max_repeats: _Optional[int] = ..., max_length_ratio: _Optional[float] = ..., repetition_penalty: _Optional[float] = ..., no_repeat_ngram_size: _Optional[int] = ..., min_output_tokens: _Optional[int] = ..., check_numbers: _Optional[bool] = ...) -> None: ...

class Hypothesis(_message.Message):
    __slots__ = ("text", "score", "num_tokens")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    NUM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    text: str
    score: float
    num_tokens: int
    def __init__(self, text: _Optional[str] = ..., score: _Optional[float] = ..., num_tokens: _Optional[int] = ...) -> None: ...

class Translation(_message.Message):
    __slots__ = ("text", "hypotheses", "finish_reason", "num_source_tokens", "segments", "alignment", "detected_language_code", "pivot_language_code")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HYPOTHESES_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    NUM_SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    DETECTED_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    PIVOT_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    text: str
    hypotheses: _containers.RepeatedCompositeFieldContainer[Hypothesis]
    finish_reason: FinishReason
    num_source_tokens: int
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    alignment: _containers.RepeatedCompositeFieldContainer[AlignedSpan]
    detected_language_code: str
    pivot_language_code: str
    def __init__(self, text: _Optional[str] = ..., hypotheses: _Optional[_Iterable[_Union[Hypothesis, _Mapping]]] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., num_source_tokens: _Optional[int] = ..., segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ..., alignment: _Optional[_Iterable[_Union[AlignedSpan, _Mapping]]] = ..., detected_language_code: _Optional[str] = ..., pivot_language_code: _Optional[str] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("source_start", "source_end", "target_start", "target_end", "finish_reason", "num_source_tokens", "num_output_tokens", "flags")
    SOURCE_START_FIELD_NUMBER: _ClassVar[int]
    SOURCE_END_FIELD_NUMBER: _ClassVar[int]
    TARGET_START_FIELD_NUMBER: _ClassVar[int]
    TARGET_END_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    NUM_SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NUM_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    finish_reason: FinishReason
    num_source_tokens: int
    num_output_tokens: int
    flags: _containers.RepeatedScalarFieldContainer[Flag]
    def __init__(self, source_start: _Optional[int] = ..., source_end: _Optional[int] = ..., target_start: _Optional[int] = ..., target_end: _Optional[int] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., num_source_tokens: _Optional[int] = ..., num_output_tokens: _Optional[int] = ..., flags: _Optional[_Iterable[_Union[Flag, str]]] = ...) -> None: ...

class AlignedSpan(_message.Message):
    __slots__ = ("source_start", "source_end", "target_start", "target_end")
    SOURCE_START_FIELD_NUMBER: _ClassVar[int]
    SOURCE_END_FIELD_NUMBER: _ClassVar[int]
    TARGET_START_FIELD_NUMBER: _ClassVar[int]
    TARGET_END_FIELD_NUMBER: _ClassVar[int]
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    def __init__(self, source_start: _Optional[int] = ..., source_end: _Optional[int] = ..., target_start: _Optional[int] = ..., target_end: _Optional[int] = ...) -> None: ...

class TranslateResponse(_message.Message):
    __slots__ = ("translations", "model", "model_version")
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[Translation]
    model: str
    model_version: str
    def __init__(self, translations: _Optional[_Iterable[_Union[Translation, _Mapping]]] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ...) -> None: ...

class TranslateStreamResponse(_message.Message):
    __slots__ = ("text_index", "delta", "translation", "model", "model_version")
    TEXT_INDEX_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    TRANSLATION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    text_index: int
    delta: str
    translation: Translation
    model: str
    model_version: str
    def __init__(self, text_index: _Optional[int] = ..., delta: _Optional[str] = ..., translation: _Optional[_Union[Translation, _Mapping]] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ...) -> None: ...

class DetectLanguageRequest(_message.Message):
    __slots__ = ("texts",)
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, texts: _Optional[_Iterable[str]] = ...) -> None: ...

class DetectLanguageResponse(_message.Message):
    __slots__ = ("detections",)
    DETECTIONS_FIELD_NUMBER: _ClassVar[int]
    detections: _containers.RepeatedCompositeFieldContainer[Detection]
    def __init__(self, detections: _Optional[_Iterable[_Union[Detection, _Mapping]]] = ...) -> None: ...

class Detection(_message.Message):
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

class ListModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("name", "version", "language_pairs", "max_source_tokens", "max_output_tokens", "default_options", "precision", "any_to_any_language_codes", "kernels", "pivoted_pairs", "licence")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_PAIRS_FIELD_NUMBER: _ClassVar[int]
    MAX_SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    ANY_TO_ANY_LANGUAGE_CODES_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    PIVOTED_PAIRS_FIELD_NUMBER: _ClassVar[int]
    LICENCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    language_pairs: _containers.RepeatedCompositeFieldContainer[LanguagePair]
    max_source_tokens: int
    max_output_tokens: int
    default_options: DecodingOptions
    precision: str
    any_to_any_language_codes: _containers.RepeatedScalarFieldContainer[str]
    kernels: str
    pivoted_pairs: _containers.RepeatedCompositeFieldContainer[PivotedPair]
    licence: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., language_pairs: _Optional[_Iterable[_Union[LanguagePair, _Mapping]]] = ..., max_source_tokens: _Optional[int] = ..., max_output_tokens: _Optional[int] = ..., default_options: _Optional[_Union[DecodingOptions, _Mapping]] = ..., precision: _Optional[str] = ..., any_to_any_language_codes: _Optional[_Iterable[str]] = ..., kernels: _Optional[str] = ..., pivoted_pairs: _Optional[_Iterable[_Union[PivotedPair, _Mapping]]] = ..., licence: _Optional[str] = ...) -> None: ...

class PivotedPair(_message.Message):
    __slots__ = ("source_language_code", "target_language_code", "pivot_language_code")
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    PIVOT_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    source_language_code: str
    target_language_code: str
    pivot_language_code: str
    def __init__(self, source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., pivot_language_code: _Optional[str] = ...) -> None: ...

class LanguagePair(_message.Message):
    __slots__ = ("source_language_code", "target_language_code")
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    source_language_code: str
    target_language_code: str
    def __init__(self, source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ...) -> None: ...
