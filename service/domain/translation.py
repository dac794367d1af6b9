"""The domain's data types: requests and results, independent of any wire format."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import NamedTuple

from service.domain.options import NO_OPTIONS, RequestedOptions

MAX_TEXTS = 1024
# Of the calls that a long document, or a stream of lines, is divided into; a longer text is sent alone.
MAX_CHUNK_TEXTS = 32
MAX_CHUNK_CHARACTERS = 64 * 2**10  # half of a server's default limit
ENTRY_CHARACTERS = 16  # size of an entry of numbers in an answer, about that on the wire


class FinishReason(enum.Enum):
    """The reason why the decoding of one sequence ended."""

    __hash__ = object.__hash__  # members are keys on every call's way, and Enum's own is Python

    STOP = "stop"  # the model produced its end-of-sentence token
    LENGTH = "length"  # max_output_tokens was reached
    RATIO = "ratio"  # the output grew out of proportion to the input
    REPETITION = "repetition"  # the output repeated itself
    CANCELLED = "cancelled"  # the caller disconnected
    DEADLINE = "deadline"  # the caller's deadline passed


class Priority(enum.Enum):
    """Precedence when slots are scarce; a lower priority gets fewer of them, but always some."""

    __hash__ = object.__hash__  # members are keys on every call's way, and Enum's own is Python

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class MimeType(enum.Enum):
    """The format of a text."""

    PLAIN = "text/plain"
    HTML = "text/html"


class SplitSentences(enum.Enum):
    """The places where a text is split into segments, which are translated independently."""

    OFF = "off"  # nowhere: a text is one segment
    ON = "on"  # at the ends of sentences and lines
    NO_NEWLINES = "no_newlines"  # at the ends of sentences; a line end within a sentence counts as a space


class Flag(enum.Enum):
    """Reasons to review a segment's translation."""

    __hash__ = object.__hash__  # members are keys on every call's way, and Enum's own is Python

    PLACEHOLDER = "placeholder"  # a placeholder's position was guessed, or those taken in order changed it
    TERM = "term"  # the same for a glossary's term
    UNKNOWN = "unknown"  # the same for characters that the model has no pieces for
    EMPTY = "empty"  # the model produced no letter and no number for a source with letters
    NUMBERS = "numbers"  # a number was changed, or the position of a number or an identifier was guessed
    TARGET_LANGUAGE = "target_language"  # unchanged: the text is in the language that it was to be translated into
    OTHER_LANGUAGE = "other_language"  # unchanged: the text is in a language that is not translated into the target


@dataclass(frozen=True, slots=True)
class Term:
    """A glossary's entry: the required translation of `source`; without a `target` it is kept unchanged."""

    source: str
    target: str | None = None
    is_case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class OwnPlaceholder:
    """A caller's own kind of placeholder: a regular expression of RE2, or what begins and what ends one."""

    pattern: str = ""
    start: str = ""
    end: str = ""


class AlignedSpan(NamedTuple):
    """A part of a source and the corresponding part of its translation; code points, from start to before end."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


@dataclass(frozen=True, slots=True)
class DetectedLanguage:
    """A language that a text may be in, as a BCP 47 code; `confidence` is from 0 to 1."""

    language_code: str
    confidence: float


@dataclass(frozen=True, slots=True)
class RequestOption:
    """The definition of a request option other than those of decoding.

    `name` is protobuf's, `attribute` the `TranslationRequest`'s. If `in_commands` it is a flag with a `metavar`, if
    `in_parameters` a KServe parameter.
    """

    name: str
    attribute: str
    kind: type[str] | type[bool] | type[enum.Enum]
    help: str
    default: str | bool | enum.Enum
    metavar: str = ""
    in_commands: bool = True
    in_parameters: bool = True


def _option(help: str, **rest: str | bool) -> dict[str, str | bool]:  # noqa: A002
    return {"help": help, **rest}


@dataclass(slots=True)  # not frozen, which takes four times as long to make, at each call; yet nothing changes it
class TranslationRequest:
    """One call: texts in one language to be translated into another, all with the same options.

    An empty `model` is chosen by the language pair, an empty `model_version` is the highest; without a
    `source_language_code`, each text's language is detected. `deadline_seconds` is on the clock of `time.monotonic()`.

    `target_prefixes`, one for each text or none, are the required beginnings of the translations. `terms` take
    precedence over the server's `glossary`. `placeholders` are kept besides the common kinds. A segment that is too
    long for the model is split at the best position, or rejected if `is_strict`. A text whose detected language is not
    translated into the target is rejected, or returned unchanged if `keeps_other_languages`.
    """

    texts: tuple[str, ...]
    source_language_code: str
    target_language_code: str
    model: str = field(
        default="",
        metadata=_option(
            "Model to use. Default: the server's first suitable one.", metavar="NAME", in_parameters=False
        ),
    )
    model_version: str = field(
        default="",
        metadata=_option("Version of the model to use. Default: the highest.", metavar="V", in_parameters=False),
    )
    options: RequestedOptions = NO_OPTIONS
    priority: Priority = field(
        default=Priority.NORMAL,
        metadata=_option("Which calls get slots first when the server is busy.", in_parameters=False),
    )
    deadline_seconds: float | None = None
    mime_type: MimeType = field(default=MimeType.PLAIN, metadata=_option("Format of the texts.", in_commands=False))
    split_sentences: SplitSentences = field(
        default=SplitSentences.ON,
        metadata=_option(
            "Translate a text sentence by sentence; no-newlines: also sentences that continue after a line end."
        ),
    )
    preserve_formatting: bool = field(
        default=False, metadata=_option("Keep the text's final punctuation and the case of its first letter.")
    )
    target_prefixes: tuple[str, ...] = ()
    glossary: str = field(default="", metadata=_option("Glossary on the server to use.", metavar="NAME"))
    terms: tuple[Term, ...] = ()
    placeholders: tuple[OwnPlaceholder, ...] = ()
    return_alignments: bool = False
    keeps_other_languages: bool = field(
        default=False,
        metadata=_option(
            "Return texts unchanged whose detected language is not translated into the target, instead of rejecting "
            "the call.",
            name="keep_other_languages",
            in_commands=False,
            in_parameters=False,
        ),
    )
    is_strict: bool = field(
        default=False,
        metadata=_option("Reject segments that are too long for the model instead of splitting them.", name="strict"),
    )
    labels: tuple[tuple[str, str], ...] = ()


def _request_options() -> Iterator[RequestOption]:
    for each in fields(TranslationRequest):
        if each.metadata:
            own = {"name": each.name, "attribute": each.name, "kind": each.type, "default": each.default}
            yield RequestOption(**{**own, **each.metadata})


REQUEST_OPTIONS: Mapping[str, RequestOption] = MappingProxyType({each.name: each for each in _request_options()})


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of one call: characters in all its texts, segments, and characters in its answer.

    The answer's size includes all hypotheses, and `ENTRY_CHARACTERS` for each segment and each link of an alignment.
    """

    max_characters: int
    max_segments: int
    max_answer_characters: int


class KeptPart(NamedTuple):
    """A part of a translation that is no model's: a placeholder or a term; code points, from start to before end."""

    start: int
    end: int
    flag: Flag  # to set if its position was guessed


class Hypothesis(NamedTuple):
    """One candidate translation of a text or of one of its segments.

    `score` is its length-normalised log-probability, `None` unless requested; `num_tokens` are those of the output. A
    text's `finish_reason` is that of its first segment that was cut off, if any. `flags`, `kept`, sorted and disjoint,
    and `alignment`, from the source to `text` and maybe empty, are a segment's.
    """

    text: str
    score: float | None = None
    num_tokens: int = 0
    finish_reason: FinishReason = FinishReason.STOP
    flags: tuple[Flag, ...] = ()
    alignment: tuple[AlignedSpan, ...] = ()
    kept: tuple[KeptPart, ...] = ()


class Segment(NamedTuple):
    """A part of a text translated on its own: its positions in text and translation, and how its decoding ended.

    Positions are code points, from start to before end.
    """

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    finish_reason: FinishReason
    num_source_tokens: int
    num_output_tokens: int
    flags: tuple[Flag, ...] = ()


class Translation(NamedTuple):
    """The answer to one text: the best hypothesis' text, all hypotheses best first, and how decoding ended.

    `finish_reason` is that of the first segment that was cut off, if any. `alignment` is empty unless requested,
    `detected_language_code` unless detected, `pivot_language_code` unless two models translated by way of it.
    """

    text: str
    hypotheses: tuple[Hypothesis, ...]
    finish_reason: FinishReason
    num_source_tokens: int
    segments: tuple[Segment, ...] = ()
    alignment: tuple[AlignedSpan, ...] = ()
    detected_language_code: str = ""
    pivot_language_code: str = ""


class TranslationResult(NamedTuple):
    """The answer to one call: the model and version used, and one translation per text, in order.

    Of several models by detected languages, it is the first text's; of two with a pivot language, the second.
    """

    model: str
    model_version: str
    translations: tuple[Translation, ...]


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """An increment of a stream: `delta` continues a text's translation; the last event of a text has all of it."""

    text_index: int
    delta: str
    translation: Translation | None
    model: str
    model_version: str
