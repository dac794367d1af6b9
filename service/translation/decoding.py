"""Decoding of a call's segments by the engine or from the cache: as a whole, or streamed."""

import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType

from service.domain.call import Call, Phase, current_call
from service.engine.sequence import JointUpdates, Sequence, SequenceProgress, SequenceUpdate
from service.models.loaded_model import LoadedModel
from service.observe.metrics import Metrics
from service.translation.cache import Decoded, TranslationCache
from service.translation.call import TranslationCall
from service.translation.pending import PendingCall, PendingCalls
from service.translation.segments import PlannedSegment


@dataclass(frozen=True, slots=True)
class SegmentProgress:
    """Final tokens so far of the call's segment of that number."""

    segment: int
    token_ids: tuple[int, ...]


class SegmentDecoder:
    """Decodes calls' segments with their models' engines. All methods belong to the event loop's thread."""

    def __init__(self, metrics: Metrics, cache: TranslationCache) -> None:
        self._metrics = metrics
        self._cache = cache
        self._pending = PendingCalls()

    @property
    def num_pending(self) -> int:
        return len(self._pending)

    @property
    def keeps(self) -> bool:
        return self._cache.max_bytes > 0

    def deliver(self, updates: Sequence_[SequenceUpdate], progress: Sequence_[SequenceProgress] = ()) -> None:
        self._pending.deliver(updates, progress)

    async def decode(
        self,
        call: TranslationCall,
        segments: Mapping[int, PlannedSegment],
        given: Mapping[int, Decoded] = MappingProxyType({}),
    ) -> dict[int, Decoded]:
        """Return the decoded hypotheses of some segments, by number; none for those no model reads; `given` are known.

        Cancelling this coroutine aborts the call's sequences in the engine.
        """
        known = {**self._cached(call, segments), **given}
        groups = _groups(call, segments, known)
        updates = iter(await self._decode(call.model, [sequence for group in groups.values() for sequence in group]))
        fresh = {number: _hypotheses([next(updates) for _ in group]) for number, group in groups.items()}
        self._keep(call, segments, fresh)
        return known | fresh

    async def grow(
        self,
        call: TranslationCall,
        *,
        wants_progress: bool = True,
        admit: Callable[[Sequence_[Sequence]], None] = lambda _: None,
    ) -> AsyncGenerator[SegmentProgress | dict[int, Decoded]]:
        """Yield the progress of the call's segments and, for some segments at a time, the results as of `decode`.

        Closing this generator aborts the call's sequences in the engine; callers that may stop early must close it.
        `admit` is called with those that are not cached before they are submitted.
        """
        segments = call.segments
        known = self._cached(call, segments)
        groups = _groups(call, segments, known, wants_progress=wants_progress)
        known.update({number: () for number, group in groups.items() if not group})
        if known:
            yield known
        owners = {sequence: number for number, group in groups.items() for sequence in group}
        if not owners:
            return
        admit(list(owners))
        updates: dict[Sequence, SequenceUpdate] = {}
        charged: Counter[Sequence] = Counter()
        with self._submitted(call.model, list(owners), wants_news=True) as pending:
            try:
                async for news in pending.news():
                    number = owners[news.sequence]
                    _charge(news, charged)
                    if isinstance(news, SequenceProgress):
                        yield SegmentProgress(number, news.token_ids)
                        continue
                    updates[news.sequence] = news
                    if all(sequence in updates for sequence in groups[number]):
                        fresh = {number: _hypotheses([updates[sequence] for sequence in groups[number]])}
                        self._keep(call, segments, fresh)
                        yield fresh
            finally:
                for news in pending.unread():  # of a stream that ends early
                    _charge(news, charged)
        call.model.statistics.decoded(list(updates.values()))

    async def _decode(self, model: LoadedModel, sequences: list[Sequence]) -> list[SequenceUpdate]:
        if not sequences:
            return []
        if len(sequences) > 1:
            joint = JointUpdates(len(sequences))
            for sequence in sequences:
                sequence.joint_updates = joint
        with self._submitted(model, sequences) as pending:
            updates = await pending.wait()
        current_call().charge(_num_output_tokens(updates))
        model.statistics.decoded(updates)
        return updates

    @contextlib.contextmanager
    def _submitted(
        self, model: LoadedModel, sequences: list[Sequence], *, wants_news: bool = False
    ) -> Iterator[PendingCall]:
        """Submit sequences to the engine; abort the unfinished ones if the `with` block fails or is cancelled."""
        call = self._pending.open(sequences, wants_news=wants_news)
        try:
            model.engine.submit(sequences)
            current_call().charge(sum(len(sequence.source_ids) for sequence in sequences))  # even if aborted later
            try:
                yield call
            except BaseException:
                model.engine.abort(call.unfinished())
                raise
            finally:
                _note(current_call(), sequences, call.finished_seconds)
        finally:
            self._pending.close(call)

    def _cached(self, call: TranslationCall, segments: Mapping[int, PlannedSegment]) -> dict[int, Decoded]:
        if not self._cache.max_bytes or call.is_chance:
            return {}
        cached: dict[int, Decoded] = {}
        num_read = 0
        for number, segment in segments.items():
            if segment.source_ids:
                num_read += 1
                found = self._cache.get(call.key(segment))
                if found and not (found[0].attention is None and call.wants_attention(segment)):
                    cached[number] = found
        self._metrics.model(call.model.name).looked_up(num_hits=len(cached), num_misses=num_read - len(cached))
        return cached

    def _keep(
        self, call: TranslationCall, segments: Mapping[int, PlannedSegment], decoded: Mapping[int, Decoded]
    ) -> None:
        if not self._cache.max_bytes or call.is_chance:
            return
        for number, hypotheses in decoded.items():
            if hypotheses:
                self._cache.put(call.key(segments[number]), hypotheses)


def _groups(
    call: TranslationCall,
    segments: Mapping[int, PlannedSegment],
    known: Mapping[int, Decoded],
    *,
    wants_progress: bool = False,
) -> dict[int, list[Sequence]]:
    return {
        number: call.sequences(segment, wants_progress=wants_progress)
        for number, segment in segments.items()
        if number not in known
    }


def _num_output_tokens(updates: Sequence_[SequenceUpdate]) -> int:
    return sum([len(hypothesis.token_ids) for update in updates for hypothesis in update.hypotheses])


def _charge(news: SequenceProgress | SequenceUpdate, charged: Counter[Sequence]) -> None:
    num_tokens = len(news.token_ids) if isinstance(news, SequenceProgress) else _num_output_tokens([news])
    current_call().charge(num_tokens - charged[news.sequence])
    charged[news.sequence] = num_tokens


def _note(current: Call, sequences: Sequence_[Sequence], finished_seconds: float | None) -> None:
    """Record the current call's time in each engine phase; unfinished sequences are counted until now."""
    if not sequences:
        return
    ended = time.monotonic() if finished_seconds is None else finished_seconds
    admitted_ones = [each for each in sequences if each.admitted_seconds]
    first = min(admitted_ones, key=attrgetter("admitted_seconds"), default=None)
    began = min([sequence.arrived_seconds for sequence in sequences])
    if first is None:
        current.took(Phase.QUEUE, began, ended)
        return
    admitted = min(max(first.admitted_seconds, began), ended)
    encoded = min(max(first.encoded_seconds, admitted), ended)
    current.took(Phase.QUEUE, began, admitted)
    current.took(Phase.ENCODE, admitted, encoded)
    current.took(Phase.DECODE, encoded, ended)


def _hypotheses(updates: Sequence_[SequenceUpdate]) -> Decoded:
    return tuple(hypothesis for update in updates for hypothesis in update.hypotheses)
