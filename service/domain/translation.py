"""The domain's own words: what a caller asks for and what comes back, free of any wire format."""

import enum
from dataclasses import dataclass, field, fields

from service.domain.errors import InvalidRequest

MAX_BEAM_SIZE = 8
MAX_TOP_K = 64
MAX_TEXTS = 1024
MAX_LENGTH_RATIO = 100.0
MAX_REPEATS = 100
RATIO_ALLOWANCE = 16  # tokens that `max_length_ratio` grants to any source: short ones may well become long
ENTRY_CHARACTERS = 16  # what an entry of numbers in an answer counts, about its size on the wire
LONGEST_REPEAT = 16  # tokens of what `max_repeats` sees coming again


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
class DecodingOptions:
    """How to decode, fully resolved.

    `length_penalty` divides a hypothesis' summed log-probability by its length to that power, as transformers'
    `generate` does: above 0 favours longer output. `max_output_tokens` does not count the end-of-sentence token's
    absence: a hypothesis has at most that many tokens, its end-of-sentence token included.

    A beam search `stops_early` as soon as `beam_size` hypotheses are finished; else it goes on while the best running
    one may beat them. What reaches `max_output_tokens` is cut there, or, with `forces_end`, ended for free with the
    end-of-sentence token, which then counts as one more. Both belong to the model, not to the caller: they are
    transformers' `early_stopping` and `forced_eos_token_id`.

    `temperature` above 0 means sampling, from the `top_k` most probable tokens and of these the fewest that hold
    `top_p` of the probability; then `beam_size` is 1, hypotheses are independent samples, and the same `seed` gives the
    same ones. `seed` is `None` where the caller leaves it to chance.

    Two guards are off at 0. With `max_length_ratio`, what the model writes has at most that many tokens per source
    token, plus `RATIO_ALLOWANCE`; a hypothesis that reaches this is cut there with `FinishReason.RATIO`. With
    `max_repeats`, no run of up to `LONGEST_REPEAT` tokens comes more often than that in a row, unless something does in
    the source: when the model has written it once too often, that last one is taken off and the hypothesis ends with
    `FinishReason.REPETITION`. Of beams, such a one is given up for others, and is returned only where too few others
    end.
    """

    beam_size: int
    length_penalty: float
    num_hypotheses: int
    max_output_tokens: int
    return_scores: bool = False
    temperature: float = 0.0
    top_k: int = MAX_TOP_K
    top_p: float = 1.0
    seed: int | None = None
    stops_early: bool = False
    forces_end: bool = False
    max_length_ratio: float = 0.0
    max_repeats: int = 0

    @property
    def is_sampled(self) -> bool:
        """Whether tokens are drawn, not ranked."""
        return self.temperature > 0.0


@dataclass(frozen=True, slots=True)
class RequestedOptions:
    """The part of the options that a caller set; `None` leaves the model's default."""

    beam_size: int | None = None
    length_penalty: float | None = None
    num_hypotheses: int | None = None
    max_output_tokens: int | None = None
    return_scores: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    max_length_ratio: float | None = None
    max_repeats: int | None = None

    def resolve(self, defaults: DecodingOptions) -> DecodingOptions:
        """Lay the caller's choices over the model's `defaults`.

        `defaults.max_output_tokens` is also the model's limit. Asking for more hypotheses than the default beam
        widens the beam, unless the caller chose one. Asking for a temperature means sampling without a beam.

        Raises:
            InvalidRequest: an option is out of range, `num_hypotheses` exceeds the beam that was asked for, or a beam
                was asked for together with sampling, or options of sampling without it.
        """
        chosen = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        values = {f.name: chosen.get(f.name, getattr(defaults, f.name)) for f in fields(DecodingOptions)}
        is_sampled = values["temperature"] > 0.0
        if is_sampled and "beam_size" not in chosen:
            values["beam_size"] = 1
            values["num_hypotheses"] = chosen.get("num_hypotheses", 1)
        elif "num_hypotheses" in chosen and "beam_size" not in chosen:
            values["beam_size"] = max(values["beam_size"], min(values["num_hypotheses"], MAX_BEAM_SIZE))
        if "beam_size" in chosen and "num_hypotheses" not in chosen:
            values["num_hypotheses"] = min(values["num_hypotheses"], max(values["beam_size"], 1))
        options = DecodingOptions(**values)
        _check_range("beam_size", options.beam_size, 1, MAX_BEAM_SIZE)
        most_hypotheses = MAX_BEAM_SIZE if is_sampled else options.beam_size
        _check_range("num_hypotheses", options.num_hypotheses, 1, most_hypotheses)
        _check_range("max_output_tokens", options.max_output_tokens, 1, defaults.max_output_tokens)
        _check_range("length_penalty", options.length_penalty, -10.0, 10.0)
        _check_range("max_length_ratio", options.max_length_ratio, 0.0, MAX_LENGTH_RATIO)
        _check_range("max_repeats", options.max_repeats, 0, MAX_REPEATS)
        _check_range("temperature", options.temperature, 0.0, 10.0)
        _check_range("top_k", options.top_k, 1, MAX_TOP_K)
        if not 0.0 < options.top_p <= 1.0:
            raise InvalidRequest(f"options.top_p is {options.top_p}; allowed is above 0 to 1.", field="options.top_p")
        if is_sampled and options.beam_size > 1:
            raise InvalidRequest(
                f"options.beam_size is {options.beam_size} and options.temperature {options.temperature}; "
                "sampling takes beam_size 1. Leave one of them out.",
                field="options.beam_size",
            )
        if not is_sampled and (alone := [name for name in ("top_k", "top_p") if name in chosen]):
            raise InvalidRequest(
                f"options.{alone[0]} is {chosen[alone[0]]} without sampling; give options.temperature above 0 too.",
                field=f"options.{alone[0]}",
            )
        return options


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also false for NaN
        raise InvalidRequest(f"options.{name} is {value}; allowed is {low} to {high}.", field=f"options.{name}")


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
    model: str = ""
    model_version: str = ""
    options: RequestedOptions = field(default_factory=RequestedOptions)
    priority: Priority = Priority.NORMAL
    deadline_seconds: float | None = None
    mime_type: MimeType = MimeType.PLAIN
    split_sentences: SplitSentences = SplitSentences.ON
    preserve_formatting: bool = False
    target_prefixes: tuple[str, ...] = ()
    glossary: str = ""
    terms: tuple[Term, ...] = ()
    return_alignments: bool = False
    is_strict: bool = False
    labels: tuple[tuple[str, str], ...] = ()


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
