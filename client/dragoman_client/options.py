"""Options of a call besides texts and languages; the server's `translation.proto` describes each in full."""

import enum
from dataclasses import dataclass


class Priority(enum.Enum):
    """Which calls get slots first when the server is busy; a lower priority gets fewer slots, but never none."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class MimeType(enum.Enum):
    """The format of the texts."""

    PLAIN = "text/plain"
    HTML = "text/html"


class SplitSentences(enum.Enum):
    """Where a text is cut into segments, each of which is translated separately."""

    OFF = "off"  # nowhere: a text is one segment
    ON = "on"  # at sentence ends and at line ends
    NO_NEWLINES = "no_newlines"  # at sentence ends; a line end within a sentence is treated as a space


@dataclass(frozen=True, slots=True)
class Term:
    """A term that must be translated as `target`; without a target it is left untranslated."""

    source: str
    target: str | None = None
    case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A kind of placeholder that stays as it is: a regular expression of RE2, or the marks at its start and end."""

    pattern: str = ""
    start: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to decode; `None` uses the model's default. The fields are those of the message `DecodingOptions`.

    The server checks the ranges, which may differ between models.
    """

    beam_size: int | None = None  # 1 to 8; 1 is greedy search
    length_penalty: float | None = None  # -10 to 10; above 0 favours longer translations
    num_hypotheses: int | None = None  # 1 to beam_size, or with sampling 1 to 8
    max_output_tokens: int | None = None  # per segment, 1 to the model's limit
    return_scores: bool | None = None
    temperature: float | None = None  # 0 to 10; above 0: sampling
    top_k: int | None = None  # with sampling: 1 to 64
    top_p: float | None = None  # with sampling: above 0 to 1
    seed: int | None = None  # with sampling: the same seed draws the same
    max_repeats: int | None = None  # 0 to 100; 0: no limit
    max_length_ratio: float | None = None  # 0 to 100; 0: no limit
    repetition_penalty: float | None = None  # above 0 to 10; above 1, repeated tokens are less likely
    no_repeat_ngram_size: int | None = None  # 0 to 100; no run of so many tokens comes twice; 0: any may
    min_output_tokens: int | None = None  # per segment, without the end; 0 to the model's limit
    check_numbers: bool | None = (
        None  # keep identifiers, and correct or flag changed numbers; the server's default: yes
    )
