"""The results of a call. Positions are code points; the end is exclusive."""

import enum
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman_client.options import Options


class FinishReason(enum.Enum):
    """Why decoding ended."""

    UNSPECIFIED = "unspecified"  # unknown to this version of the client
    STOP = "stop"  # the model ended the sentence, or there was nothing to translate
    LENGTH = "length"  # max_output_tokens was reached
    RATIO = "ratio"  # the output became disproportionately long
    REPETITION = "repetition"  # the output repeated itself
    CANCELLED = "cancelled"
    DEADLINE = "deadline"


class Flag(enum.Enum):
    """A reason to check a segment's translation."""

    UNSPECIFIED = "unspecified"  # unknown to this version of the client
    PLACEHOLDER = "placeholder"  # a placeholder's position was guessed: the model lost or doubled it
    TERM = "term"  # the same for a glossary's term
    UNKNOWN = "unknown"  # the same for characters that the model has no pieces for
    EMPTY = "empty"  # the model wrote neither letters nor numbers for a source that has letters
    NUMBERS = "numbers"  # a number was changed, or the position of a number or an identifier was guessed
    TARGET_LANGUAGE = "target_language"  # unchanged: the text is in the target language already
    OTHER_LANGUAGE = "other_language"  # unchanged: the text's language is not translated into the target


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One candidate translation; `score` is its length-normalised log-probability, `None` unless requested."""

    text: str
    score: float | None
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text that was translated separately."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    finish_reason: FinishReason
    num_source_tokens: int
    num_output_tokens: int
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class AlignedSpan:
    """A part of a text and the corresponding part of its translation."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


@dataclass(frozen=True, slots=True)
class Translation:
    """The result for one text: the best hypothesis' text, all hypotheses best first, and why decoding ended.

    `finish_reason` is that of the first segment that did not end by itself, if there is one. `alignment` is empty
    unless requested; `detected_language_code` is empty if the source language was given, and `pivot_language_code`
    unless two models translated the text, by way of that language.
    """

    text: str
    hypotheses: tuple[Hypothesis, ...]
    finish_reason: FinishReason
    num_source_tokens: int
    segments: tuple[Segment, ...] = ()
    alignment: tuple[AlignedSpan, ...] = ()
    detected_language_code: str = ""
    pivot_language_code: str = ""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """The next part of a stream: `delta` continues the translation of the text `text_index`.

    `translation` is the whole translation, set in the last event of each text. `model` and `model_version` identify the
    model in use.
    """

    text_index: int
    delta: str
    translation: Translation | None
    model: str = ""
    model_version: str = ""


@dataclass(frozen=True, slots=True)
class DetectedLanguage:
    """A possible language of a text, as a BCP 47 code; `confidence` is from 0 to 1."""

    language_code: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Model:
    """A model loaded by a server.

    `language_pairs` are (source, target) codes; in addition, it translates each of `any_to_any_language_codes` into
    each other one. `pivoted_pairs` are (source, target, pivot) codes: what another model has translated into the pivot
    language, this one translates into the target. `default_options` are those of calls that set none. `kernels` is what
    computes it on the server, such as "plain", and `licence` that of its weights; empty if the server is too old to
    say.
    """

    name: str
    version: str
    language_pairs: tuple[tuple[str, str], ...]
    max_source_tokens: int
    max_output_tokens: int
    default_options: Options
    precision: str
    any_to_any_language_codes: tuple[str, ...] = ()
    kernels: str = ""
    pivoted_pairs: tuple[tuple[str, str, str], ...] = ()
    licence: str = ""

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every direction that it translates alone, as (source, target) codes."""
        yield from self.language_pairs
        yield from itertools.permutations(self.any_to_any_language_codes, 2)
