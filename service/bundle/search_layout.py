"""The memory that Python and the search in C++ share: the one table of its structures, constants and states.

`fused_io` makes NumPy's structures of it, `kernels/layout.py` writes `kernels/src/search/layout.h`.
"""

import enum
from typing import Final, NamedTuple

from service.domain.options import LONGEST_REPEAT, MAX_BEAM_SIZE, MAX_TOP_K, OPTIONS, ROW_OPTIONS

_KINDS: Final = {int: "int32", float: "float32"}
UNGUARDED: Final = 2**26  # no row ever has so many repeats; times `LONGEST_REPEAT` it still fits into 32 bits


class Constant(NamedTuple):
    """A number that both know."""

    name: str
    value: int
    meaning: str = ""


class Field(NamedTuple):
    """A number of a structure, or an array of some."""

    name: str
    kind: str  # int32, int64, uint64 or float32
    meaning: str = ""
    length: Constant | int = 1


class Structure(NamedTuple):
    """Fields that lie next to each other."""

    name: str
    meaning: str
    fields: tuple[Field, ...]


class Status(enum.IntEnum):
    """Whether a row goes on, or how it has ended."""

    RUNNING = 0
    STOPPED = 1  # the last token is the end of the sentence
    AT_LIMIT = 2  # `length` has reached `limit`
    REPEATING = 3  # the last `excess` tokens repeat once too often
    BROKEN = 4  # the model produced NaN


class Flags(enum.IntEnum):
    """Options that are set or not."""

    WANTS_SCORE = 1  # sum up `log_prob` in greedy search and sampling; beams always do
    FORCES_END = 2
    STOPS_EARLY = 4
    WANTS_ATTENTION = 8  # record what is attended to, if the graph names heads for it
    NARROWS = 16


class Interrupt(enum.IntEnum):
    """Why other threads end a run early."""

    NONE = 0
    NOW = 1
    FOR_NEWCOMERS = 2  # sequences could join


MAX_BEAM: Final = Constant("kMaxBeam", MAX_BEAM_SIZE)
MAX_PERIOD: Final = Constant("kMaxPeriod", LONGEST_REPEAT)
CONSTANTS: Final = (
    MAX_BEAM,
    Constant("kMaxCandidates", MAX_TOP_K),
    MAX_PERIOD,
    Constant("kMaxThreads", 64),
    Constant("kUnguarded", UNGUARDED, "of `max_repeats`: no limit"),
)

ROW: Final = Structure(
    "Row",
    "One row: one hypothesis of a running sequence. A beam of k has k rows, in the order of their ranks, best first.",
    (
        Field("token_id", "int64", "the input of the next step"),
        Field("seed", "uint64"),
        Field("length", "int32", "tokens in the self-attention cache, as many as in the output, forced ones included"),
        Field("source_length", "int32"),
        Field("forced_length", "int32", "output_ids[0 .. forced_length) are forced"),
        Field("limit", "int32", "the length at which the output is cut"),
        Field("slot", "int32", "the row of a fused graph's self-attention cache that holds its own tokens"),
        Field("source_slot", "int32", "the row of a fused graph's cross-attention cache"),
        Field("max_repeats", "int32", "kUnguarded: no limit"),
        Field("log_prob", "float32", "summed over the tokens that the model chose"),
        Field("width", "int32", "of the beam; 1: greedy search or sampling"),
        Field("rank", "int32", "in the beam; 0: the leader, whose fields below count for the beam"),
        Field("beam_rows", "int32", "rows of the beam by rank; of the leader", MAX_BEAM),
        Field("caller_prefix", "int32", "forced tokens that scores leave out"),
        Field("model_prefix", "int32", "forced tokens before those"),
        *(Field(name, _KINDS[OPTIONS[name].kind], "an option") for name in ROW_OPTIONS),
        Field("flags", "int32"),
        Field("status", "int32"),
        Field("excess", "int32"),
        Field("num_finished", "int32", "hypotheses of the beam; of the leader"),
        Field("num_given_up", "int32"),
        Field("runs", "int32", "how many of the last tokens equal the one p + 1 positions before", MAX_PERIOD),
    ),
)

HYPOTHESIS: Final = Structure(
    "Hypothesis",
    "A finished hypothesis of a beam. Those of the beam with rows r[0], r[1], ... are, best first, at r[0], r[1], ..., "
    "and those it gave up, because they repeat themselves, at num_slots + r[0], num_slots + r[1], ...",
    (
        Field("score", "float32", "normalized by length"),
        Field("length", "int32"),
        Field("excess", "int32", "tokens at its end that repeat once too often"),
        Field("reserved", "int32"),
    ),
)

CONTROL: Final = Structure(
    "Control",
    "What a run is told and what it tells, all int32.",
    (
        Field("num_rows", "int32", "rows [0, num_rows) take part"),
        Field("max_steps", "int32"),
        Field("returns_after", "int32", "rows that end before the run returns; 0: it goes on without them"),
        Field("interrupt", "int32", "polled between steps: other threads set it to an Interrupt"),
        Field("eos_id", "int32"),
        Field("decoder_start_id", "int32"),
        Field("num_steps", "int32", "out: steps that were made"),
        Field("num_generated", "int32", "out: tokens chosen, one per sequence and step, without forced ones"),
        Field("num_threads", "int32", "that the run may use, the caller's included"),
        Field("num_row_steps", "int32", "out: the rows of every step"),
        Field("num_ended", "int32", "out: rows that ended"),
        Field("least_steps", "int32", "that an interrupt for newcomers leaves the run"),
        Field("reserved", "int32", "", 4),
    ),
)

STEP: Final = Structure(
    "Step",
    "What the next step of a plain graph needs, all int32.",
    (
        Field("num_candidates", "int32", "the most that a row wants"),
        Field("log_probs", "int32", "whether a row wants that of its best token,"),
        Field("logits", "int32", "all logits,"),
        Field("log_totals", "int32", "or their log-sum-exp"),
        Field("total_length", "int32", "the most tokens in a row's cache after the step"),
        Field("longest_source", "int32"),
        Field("is_over", "int32", "there is none: the run ends"),
        Field("num_copies", "int32", "caches to copy before the step, even if the run ends"),
    ),
)

STRUCTURES: Final = (ROW, HYPOTHESIS, CONTROL, STEP)
ENUMERATIONS: Final[tuple[type[enum.IntEnum], ...]] = (Status, Flags, Interrupt)
