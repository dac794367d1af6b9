"""Runs the steps of a call: short ones on the event loop, others on the threads of the `ComputePool`."""

import functools
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from service.domain.call import Phase, current_call
from service.domain.checkpoint import done_within
from service.observe.metrics import Metrics
from service.translation.assembling import Candidates
from service.translation.cache import Decoded
from service.translation.call import TranslationCall
from service.translation.compute_pool import ComputePool
from service.translation.segments import PlannedSegment

# Up to these limits, and for small calls, the event loop computes itself: a switch to another thread takes longer under
# load. Short work that takes longer after all continues on another thread.
_MAX_INLINE_SECONDS = 0.002
MAX_INLINE_ENTRIES = 1_024  # segments and alignment links that the event loop converts to messages itself

T = TypeVar("T")


class Steps:
    """The steps of calls that compute, and how long they took. All methods belong to the event loop's thread."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._pool = ComputePool()

    def close(self) -> None:
        self._pool.close()

    async def plan(self, call: TranslationCall) -> None:
        began = time.monotonic()
        if not (call.is_small and done_within(_MAX_INLINE_SECONDS, call.plan)):
            await self.run(call.plan, call.num_characters, call.request.deadline_seconds)
        self._note(Phase.TOKENIZE, call, began)

    async def restore(
        self,
        call: TranslationCall,
        segments: Mapping[int, PlannedSegment],
        decoded: Mapping[int, Decoded],
        *,
        is_mended: bool = False,
    ) -> dict[int, Candidates]:
        began = time.monotonic()
        num_tokens, may_align = 0, False
        for number, hypotheses in decoded.items():
            may_align = may_align or segments[number].is_aligned or bool(segments[number].spans)
            for hypothesis in hypotheses:
                num_tokens += len(hypothesis.token_ids)
        if num_tokens <= 2 * MAX_INLINE_ENTRIES and not may_align:
            candidates = call.restore(segments, decoded, is_mended=is_mended)
        else:
            work = functools.partial(call.restore, segments, decoded, is_mended=is_mended)
            candidates = await self.run(work, call.num_characters, call.request.deadline_seconds)
        self._note(Phase.DETOKENIZE, call, began)
        return candidates

    async def assemble(self, call: TranslationCall, work: Callable[[], T]) -> T:
        if call.is_small:
            return work()
        return await self.run(work, call.num_characters, call.request.deadline_seconds)

    async def run(self, work: Callable[[], T], size: int, deadline_seconds: float | None = None) -> T:
        """Return the result of `work`, computed on another thread; shorter work, by `size`, goes first."""
        caller = current_call().origin[:1]  # a key or a host, regardless of its connections
        return await self._pool.run(work, size, deadline_seconds, caller)

    def _note(self, phase: Phase, call: TranslationCall, began_seconds: float) -> None:
        ended_seconds = time.monotonic()
        call.record.intervals.append((phase, began_seconds, ended_seconds))
        self._metrics.model(call.model.name).phases[phase].observe(ended_seconds - began_seconds)
        call.model.statistics.phases[phase].add(ended_seconds - began_seconds)
