"""Decides which waiting sequences join the batch in the next turn. Pure functions."""

from collections.abc import Iterable
from typing import NamedTuple

from service.domain.call import Origin
from service.engine.runner import ONE_STEP, RunLimits
from service.engine.sequence import Sequence

_MAX_SKIPPED = 32  # how far to look past sequences that don't suit this turn's encoder run
_MAX_TOO_MANY = 2  # the same without padding: only the budget's rest is left to fill


class StepPlan(NamedTuple):
    """The plan of the next turn: `admitted` sequences are encoded together and join the running ones for a run.

    `num_tokens` are their source tokens, `num_padded_tokens` the tokens that the encoder computes: rows times longest
    source, or the same number if it needs no padding.
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
    free blocks all behind it, so none is overtaken forever. Within the encoder run (of at most `max_encode_tokens`
    tokens; if it pads, padding included, and at least half of them live) a sequence of unsuitable length may be
    skipped; then nothing else of its call is admitted before it, and as the first of the next turn it joins whatever
    its length.
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
            if num_skipped == (_MAX_SKIPPED if pads else _MAX_TOO_MANY):
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
