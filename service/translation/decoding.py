"""Decoding of a call's segments by the engine or from the cache: as a whole, or streamed."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from types import MappingProxyType

from service.domain.call import Call, Phase
from service.engine.sequence import JointUpdates, Sequence, SequenceProgress, SequenceUpdate
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
        self.keeps = cache.max_bytes > 0
        self._pending = PendingCalls()

        self.deliver = self._pending.deliver

    @property
    def num_pending(self) -> int:
        return len(self._pending)

    async def decode(
        self,
        call: TranslationCall,
        segments: Mapping[int, PlannedSegment],
        given: Mapping[int, Decoded] = MappingProxyType({}),
    ) -> dict[int, Decoded]:
        """Return the decoded hypotheses of some segments, by number; none for those no model reads; `given` are known.

        Cancelling this coroutine aborts the call's sequences in the engine.
        """
        known = {**(self._cached(call, segments) if self.keeps else {}), **given}
        groups = call.sequences(segments, known)
        sequences = [sequence for group in groups.values() for sequence in group]
        fresh: dict[int, Decoded] = dict.fromkeys(groups, ())
        if sequences:
            if len(sequences) > 1:
                joint = JointUpdates(len(sequences))
                for sequence in sequences:
                    sequence.joint_updates = joint
            with _Submission(self._pending, call, sequences) as pending:
                await pending.done
            if call.record.caller is not None:
                call.record.charge(_num_output_tokens(pending.updates.values()))
            for number, group in groups.items():
                fresh[number] = _hypotheses(pending, group)
            if self.keeps:
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
        `admit` is called with uncached sequences before they are submitted.
        """
        segments = call.segments
        known = self._cached(call, segments) if self.keeps else {}
        groups = call.sequences(segments, known, wants_progress=wants_progress)
        known.update({number: () for number, group in groups.items() if not group})
        if known:
            yield known
        owners = {sequence: number for number, group in groups.items() for sequence in group}
        if not owners:
            return
        admit(list(owners))
        read: set[Sequence] = set()
        charged: Counter[Sequence] = Counter()
        with _Submission(self._pending, call, list(owners), wants_news=True) as pending:
            try:
                async for news in pending.news():
                    number = owners[news.sequence]
                    _charge(call.record, news, charged)
                    if isinstance(news, SequenceProgress):
                        yield SegmentProgress(number, news.token_ids)
                        continue
                    read.add(news.sequence)
                    if read.issuperset(groups[number]):
                        fresh = {number: _hypotheses(pending, groups[number])}
                        if self.keeps:
                            self._keep(call, segments, fresh)
                        yield fresh
            finally:
                for news in pending.unread():  # of a stream that ends early
                    _charge(call.record, news, charged)

    def _cached(self, call: TranslationCall, segments: Mapping[int, PlannedSegment]) -> dict[int, Decoded]:
        if call.is_chance:
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
        if call.is_chance:
            return
        for number, hypotheses in decoded.items():
            if hypotheses:
                self._cache.put(call.key(segments[number]), hypotheses)


class _Submission:
    """A call's sequences in the engine in a `with` block; unfinished ones are aborted if it fails or is cancelled."""

    __slots__ = ("_call", "_calls", "_pending")

    def __init__(
        self, calls: PendingCalls, call: TranslationCall, sequences: list[Sequence], *, wants_news: bool = False
    ) -> None:
        self._calls = calls
        self._call = call
        self._pending = calls.open(sequences, wants_news=wants_news)

    def __enter__(self) -> PendingCall:
        call, pending = self._call, self._pending
        try:
            call.model.engine.submit(pending.sequences)
        except BaseException:
            self._calls.close(pending)
            raise
        if call.record.caller is not None:  # even if aborted later
            call.record.charge(sum([len(sequence.source_ids) for sequence in pending.sequences]))
        return pending

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        call, pending = self._call, self._pending
        if error is not None:
            call.model.engine.abort(pending.unfinished())
        self._calls.close(pending)
        began, admitted, ended = _note(call.record, pending)
        if error is None:
            call.model.statistics.queue.add(admitted - began)
            call.model.statistics.decode.add(ended - admitted)


def _num_output_tokens(updates: Iterable[SequenceUpdate]) -> int:
    return sum([len(hypothesis.token_ids) for update in updates for hypothesis in update.hypotheses])


def _charge(record: Call, news: SequenceProgress | SequenceUpdate, charged: Counter[Sequence]) -> None:
    num_tokens = len(news.token_ids) if isinstance(news, SequenceProgress) else _num_output_tokens([news])
    record.charge(num_tokens - charged[news.sequence])
    charged[news.sequence] = num_tokens


def _note(record: Call, pending: PendingCall) -> tuple[float, float, float]:
    """Record a call's time in each engine phase, unfinished sequences until now; return its arrival, start and end."""
    ended = time.monotonic() if pending.finished_seconds is None else pending.finished_seconds
    began = ended
    first: Sequence | None = None
    for sequence in pending.sequences:
        began = min(began, sequence.arrived_seconds)
        if sequence.admitted_seconds and (first is None or sequence.admitted_seconds < first.admitted_seconds):
            first = sequence
    if first is None:
        record.intervals.append((Phase.QUEUE, began, ended))
        return began, ended, ended
    admitted = min(max(first.admitted_seconds, began), ended)
    encoded = min(max(first.encoded_seconds, admitted), ended)
    record.intervals += (
        (Phase.QUEUE, began, admitted),
        (Phase.ENCODE, admitted, encoded),
        (Phase.DECODE, encoded, ended),
    )
    return began, admitted, ended


def _hypotheses(pending: PendingCall, sequences: Sequence_[Sequence]) -> Decoded:
    updates = pending.updates
    if len(sequences) == 1:  # as nearly always
        return updates[sequences[0]].hypotheses
    return tuple([hypothesis for sequence in sequences for hypothesis in updates[sequence].hypotheses])
