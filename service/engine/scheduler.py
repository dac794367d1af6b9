"""Plans a turn: which waiting sequences join, how much is encoded at once, how many steps follow. Pure functions."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from service.domain.call import Origin
from service.engine.costs import Costs
from service.engine.runner import ONE_STEP, RunLimits
from service.engine.sequence import Sequence

_MAX_SKIPPED = 32  # how far to look past sequences whose lengths don't suit this turn's encoder run, where it pads

_MOST_STEPS = 64
# Of an encoder run while others decode, and of a run of steps while others wait: so many times what encoding a source
# takes, within bounds. A turn costs time of its own, and sources that are encoded together share it. On a CPU without
# VNNI, where encoding one takes 2 to 4 ms, 96 callers of the shipped model got 296 calls/s when encoder runs might take
# 8 ms and runs 6, and 331 with this (`benchmarks.serving`).
_SOURCES = 4.0
_LEAST_SECONDS, _MOST_SECONDS = 0.006, 0.020

# How many sequences must end before a run returns to let waiting ones join. With n sequences of L steps, one ends each
# L / n steps. A turn that lets N join costs P seconds of its own, and the empty rows until then, at a share f of the
# step's time s, N^2 / 2 x f L s / n^2. Per sequence, that is least for N = n sqrt(2 P / (f L s)); here for P = 0.6 ms,
# f = 0.6 and L = 25.
_END_SECONDS = 0.00008


class StepPlan(NamedTuple):
    """The plan of the next turn: `admitted` sequences are encoded together and join the running ones for a run.

    `num_tokens` are source tokens, `num_padded_tokens` what the encoder computes: padded, rows times longest source.
    """

    admitted: tuple[Sequence, ...]
    num_tokens: int = 0
    num_padded_tokens: int = 0
    limits: RunLimits = ONE_STEP


def schedule(
    candidates: Iterable[Sequence], num_free_slots: int, max_encode_tokens: int, max_sequences: int, *, pads: bool
) -> StepPlan:
    """Choose the sequences to admit, at most `max_sequences`; `pads` says whether the encoder pads their sources.

    `candidates` come in fair order. Slots are given strictly in that order: a sequence that needs more slots than are
    free blocks all behind it, so none is overtaken forever. Within the encoder run (at most `max_encode_tokens` tokens;
    if it pads, padding included, and at least half of them live) a sequence of unsuitable length may be skipped; then
    nothing else of its call is admitted before it, and it joins first in the next turn, whatever its length.
    """
    admitted: list[Sequence] = []
    skipped: set[Origin] = set()
    longest = live = num_skipped = 0
    if num_free_slots <= 0 or max_sequences <= 0:
        return StepPlan(())
    for sequence in candidates:
        length = len(sequence.source_ids)
        padded = (len(admitted) + 1) * max(longest, length) if pads else live + length
        unsuitable = bool(admitted) and (padded > max_encode_tokens or padded > 2 * (live + length))
        if sequence.origin in skipped or (unsuitable and sequence.num_slots <= num_free_slots):
            skipped.add(sequence.origin)
            num_skipped += 1
            if not pads or num_skipped == _MAX_SKIPPED:  # without padding only the budget's rest is left to fill
                break
            continue
        if sequence.num_slots > num_free_slots:
            break
        admitted.append(sequence)
        longest, live = max(longest, length), live + length
        num_free_slots -= sequence.num_slots
        if not num_free_slots or len(admitted) == max_sequences:
            break
    return StepPlan(tuple(admitted), live, len(admitted) * longest if pads else live)


def awaited_seconds(costs: Costs) -> float:
    """Return how long a run of steps may take that somebody waits for, and an encoder run in any case."""
    return min(max(_SOURCES * costs.source_seconds, _LEAST_SECONDS), _MOST_SECONDS)


def encode_budget(costs: Costs, num_rows: int, num_free: int, max_tokens: int) -> int:
    """Return the most padded source tokens to encode in this turn, 1 to `max_tokens`, with `num_rows` slots in use.

    During an encoder run no sequence gets a token; while it is postponed, slots stay empty. With at least half of the
    slots in use, encoding may take as long as a run, so running sequences slow down at most twofold; with fewer,
    longer, in proportion to empty slots per slot in use. It may always take `awaited_seconds`, a pause that no reader
    notices, as encoding sources together costs less than one in each turn.
    """
    if not num_rows or not costs.token_seconds:
        return max_tokens
    run_seconds = max(costs.step_seconds(num_rows), awaited_seconds(costs))
    return int(min(max(run_seconds * max(1.0, num_free / num_rows) / costs.token_seconds, 1.0), max_tokens))


def run_limits(
    costs: Costs,
    num_rows: int,
    num_sequences: int,
    *,
    is_awaited: bool,
    needs_row: bool,
    seconds_left: float | None = None,
    steps_to_first_token: int | None = None,
) -> RunLimits:
    """Return the limits of the next run, with `num_rows` rows of `num_sequences` sequences.

    `is_awaited` says whether somebody waits for the run's end when it begins: to join, or for tokens. Whoever begins to
    wait later waits until it has taken as long as an awaited one: turns take the interpreter from the event loop, and
    with runs of 3 ms, or ending at each newcomer, a server of short texts had a quarter less capacity. `needs_row`:
    sequences wait that can join only once others have ended. `seconds_left` is the time to the next deadline,
    `steps_to_first_token` the number of steps to the first token that can be reported.
    """
    step_seconds = costs.step_seconds(num_rows)
    if not step_seconds:
        return RunLimits(1, 1 if needs_row else 0)
    awaited = awaited_seconds(costs)
    seconds = awaited if is_awaited else max(_MOST_SECONDS / 2, awaited)
    if seconds_left is not None:
        seconds = min(seconds, seconds_left)
    steps = min(seconds / step_seconds, _MOST_STEPS)
    if steps_to_first_token is not None:
        steps = min(steps, steps_to_first_token)
    returns_after = 0
    if needs_row:
        num_ended = int(num_sequences * math.sqrt(_END_SECONDS / step_seconds))
        returns_after = min(max(num_ended, 1), num_sequences) * num_rows // num_sequences
    return RunLimits(max(int(steps), 1), returns_after, int(awaited / step_seconds))
