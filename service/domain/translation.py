"""The domain's own words: what a caller asks for and what comes back, free of any wire format."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from service.domain.options import LONGEST_REPEAT as LONGEST_REPEAT  # the engine imports these three from here
from service.domain.options import RATIO_ALLOWANCE as RATIO_ALLOWANCE
from service.domain.options import DecodingOptions as DecodingOptions
from service.domain.options import RequestedOptions

MAX_TEXTS = 1024
ENTRY_CHARACTERS = 16  # what an entry of numbers in an answer counts, about its size on the wire


class FinishReason(enum.Enum):
    """Why the decoding of one sequence ended."""

    STOP = "stop"  # the model produced its end-of-sentence token
    LENGTH = "length"  # max_output_tokens was reached
    RATIO = "ratio"  # the output grew out of proportion to the input
    REPETITION = "repetition"  # the output repeated itself
    CANCELLED = "cancelled"  # the caller went away
    DEADLINE = "deadline"  # the caller's deadline passed


class Priority(enum.Enum):
    """Whose turn it is when slots are scarce; a lower priority gets fewer of them, never none."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class MimeType(enum.Enum):
    """What a text is written in."""

    PLAIN = "text/plain"
    HTML = "text/html"


class SplitSentences(enum.Enum):
    """Where a text is cut into segments, which are translated each by itself."""

    OFF = "off"  # nowhere: a text is one segment
    ON = "on"  # where sentences end, and at line ends
    NO_NEWLINES = "no_newlines"  # where sentences end; a line end within a sentence is a space like any other


class Flag(enum.Enum):
    """What a caller should look at in a segment's translation."""

    PLACEHOLDER = "placeholder"  # a placeholder's place was guessed: the model lost or doubled it
    TERM = "term"  # the same of a glossary's term
    UNKNOWN = "unknown"  # the same of characters that the model has no pieces for
    EMPTY = "empty"  # the model wrote no letter and no number for a source that has letters


@dataclass(frozen=True, slots=True)
class Term:
    """A glossary's entry: what `source` must become; without a `target` it stays as it is."""

    source: str
    target: str | None = None
    is_case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class AlignedSpan:
    """A part of a source and the part of its translation that says the same; code points, from start to before end."""

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
    """What there is to know about an option of a request beside those of decoding.

    `name` is that of the protobuf field, `attribute` that of `TranslationRequest`. It is a flag of the command line if
    it is `in_commands`, with `metavar` for its value, and a parameter of KServe's if it is `in_parameters`.
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


@dataclass(frozen=True, slots=True)
class TranslationRequest:
    """One call: texts in one language to be translated into another, all with the same options.

    `model` may be empty: then the language pair picks it. An empty `model_version` is the highest one. An empty
    `source_language_code` means that each text's language is detected. `deadline_seconds` is on the clock of
    `time.monotonic()`.

    `target_prefixes`, one for each text or none at all, are how the translations must begin. `glossary` names one of
    the server's; `terms` come before its. A segment that is too long for the model is cut at the best place, or, where
    the caller `is_strict`, refused.
    """

    request_id: str
    texts: tuple[str, ...]
    source_language_code: str
    target_language_code: str
    model: str = field(
        default="",
        metadata=_option("Model to use. Default: the server's first that fits.", metavar="NAME", in_parameters=False),
    )
    model_version: str = field(
        default="",
        metadata=_option("Version of the model to use. Default: the highest.", metavar="V", in_parameters=False),
    )
    options: RequestedOptions = field(default_factory=RequestedOptions)
    priority: Priority = field(
        default=Priority.NORMAL,
        metadata=_option("Which calls get slots first when the server is busy.", in_parameters=False),
    )
    deadline_seconds: float | None = None
    mime_type: MimeType = field(
        default=MimeType.PLAIN, metadata=_option("What the texts are written in.", in_commands=False)
    )
    split_sentences: SplitSentences = field(
        default=SplitSentences.ON,
        metadata=_option("Translate a text sentence by sentence; no-newlines: also those that go on after a line end."),
    )
    preserve_formatting: bool = field(
        default=False, metadata=_option("Keep the text's final punctuation and the case of its first letter.")
    )
    target_prefixes: tuple[str, ...] = ()
    glossary: str = field(default="", metadata=_option("Glossary of the server to follow.", metavar="NAME"))
    terms: tuple[Term, ...] = ()
    return_alignments: bool = False
    is_strict: bool = field(
        default=False,
        metadata=_option("Reject what is too long for the model instead of cutting it.", name="strict"),
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
    """The most that one call may have: characters in its texts together, segments, and characters in its answer.

    Of the answer all hypotheses count, and `ENTRY_CHARACTERS` for each segment and each link of an alignment.
    """

    max_characters: int
    max_segments: int
    max_answer_characters: int


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One candidate translation; `score` is its length-normalised log-probability, `None` unless asked for."""

    text: str
    score: float | None
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text that was translated by itself: where it is in text and translation, and how its decoding ended.

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


@dataclass(frozen=True, slots=True)
class Translation:
    """The answer to one text: the best hypothesis' text, all hypotheses best first, and how decoding ended.

    `finish_reason` is that of the first segment that did not end by itself, if there is one. `alignment` is empty
    unless asked for; `detected_language_code` unless the caller left the source language out.
    """

    text: str
    hypotheses: tuple[Hypothesis, ...]
    finish_reason: FinishReason
    num_source_tokens: int
    segments: tuple[Segment, ...] = ()
    alignment: tuple[AlignedSpan, ...] = ()
    detected_language_code: str = ""


@dataclass(frozen=True, slots=True)
class TranslationResult:
    """The answer to one call: the model and version that were used and one translation per text, in order.

    Where detected languages led to several models, it is the first text's.
    """

    model: str
    model_version: str
    translations: tuple[Translation, ...]


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """What a stream tells next of the text of that index: `delta` comes after all before it.

    The last event of a text has its whole translation.
    """

    index: int
    delta: str
    model: str
    model_version: str
    translation: Translation | None = None
