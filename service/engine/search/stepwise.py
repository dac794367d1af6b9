"""Search on a runner that only steps: each sequence follows a strategy, which chooses its tokens here."""

from collections.abc import Collection

from service.domain.options import DecodingOptions
from service.engine.batch import Batch
from service.engine.integrity import expect
from service.engine.runner import Fetch, Rows, RunLimits, RunnerSpec, StepRunner
from service.engine.search.beam import BeamSearch
from service.engine.search.greedy import Greedy
from service.engine.search.rescoring import Rescoring
from service.engine.search.sampling import Sampling
from service.engine.search.strategy import Outcome, Strategy
from service.engine.sequence import Sequence

_Kind = tuple[int, bool, bool]


def new_strategy(options: DecodingOptions, spec: RunnerSpec) -> Strategy:
    """Create the strategy for a sequence's options; sequences of one `_kind` share it."""
    strategy: Strategy
    if options.beam_size > 1:
        strategy = BeamSearch(spec.eos_id, options.beam_size)
    else:
        strategy = Sampling(spec.eos_id) if options.is_sampled else Greedy(spec.eos_id)
    if not options.changes_scores:
        return strategy
    return Rescoring(strategy, spec, is_beam=options.beam_size > 1)


def _kind(options: DecodingOptions) -> _Kind:
    return options.beam_size, options.is_sampled, options.changes_scores


class StepwiseSearch:
    """A `Search`: the strategies of a batch, each with its sequences."""

    def __init__(self, runner: StepRunner, batch: Batch) -> None:
        self._runner = runner
        self._batch = batch
        self._spec = runner.spec
        self._rows = Rows(batch.token_ids, batch.lengths, batch.source_lengths, batch.limits)  # views of the live rows
        self._strategies: dict[_Kind, Strategy] = {}
        self._fetch = Fetch(next_ids=False, next_log_probs=False, num_candidates=0)
        self._revision = -1  # of the batch that `_fetch` is for

    @property
    def num_kept(self) -> int:
        """See `Search.num_kept`."""
        return sum(len(list(strategy.sequences)) for strategy in self._strategies.values())

    def join(self, sequence: Sequence) -> None:
        """See `Search.join`."""
        kind = _kind(sequence.options)
        if kind not in self._strategies:
            self._strategies[kind] = new_strategy(sequence.options, self._spec)
        self._strategies[kind].join(sequence)

    def leave(self, sequence: Sequence) -> None:
        """See `Search.leave`."""
        kind = _kind(sequence.options)
        strategy = self._strategies[kind]
        strategy.leave(sequence)
        if not strategy.sequences:
            del self._strategies[kind]

    def run(self, limits: RunLimits) -> Outcome:
        """See `Search.run`. How many steps there are is up to the runner and the strategies."""
        batch, runner = self._batch, self._runner
        fetch = self._fetch_for_next()
        most = self._spec.max_steps
        max_steps = min(most, *(each.max_steps(batch) for each in self._strategies.values())) if most > 1 else 1
        num_tokens = int(self._rows.lengths.sum())
        output = runner.run(self._rows, fetch, max_steps)
        outcome = Outcome(num_steps=output.num_steps)
        for strategy in self._strategies.values():
            strategy.advance(batch, output, outcome)
        outcome.num_row_steps = int(self._rows.lengths.sum()) - num_tokens
        if outcome.copies:
            sources, targets = zip(*outcome.copies, strict=True)
            runner.reorder(sources, targets, batch.lengths[list(sources)].tolist())
        return outcome

    def interrupt(self) -> None:
        """See `Search.interrupt`. Runs are short."""

    def interrupt_for_newcomers(self) -> None:
        """See `Search.interrupt_for_newcomers`. Runs are short."""

    def clear_interrupt(self) -> None:
        """See `Search.clear_interrupt`."""

    def certain(self, sequence: Sequence) -> tuple[int, ...]:
        """See `Search.certain`."""
        return self._strategies[_kind(sequence.options)].certain(self._batch, sequence)

    def check_integrity(self, running: Collection[Sequence]) -> None:
        """Check that each running sequence follows one strategy, the one for its options, and that no others do."""
        kept = [(kind, each) for kind, strategy in self._strategies.items() for each in strategy.sequences]
        expect({each for _, each in kept} <= set(running), "a search is kept of a sequence that has left")
        expect(len(kept) == len(running), f"{len(kept)} sequences follow a strategy, {len(running)} run")
        expect(all(_kind(each.options) == kind for kind, each in kept), "a sequence follows another one's strategy")

    def _fetch_for_next(self) -> Fetch:
        """Return what the next run has to compute; the live rows may have changed."""
        batch = self._batch
        if self._revision != batch.revision:
            self._revision = batch.revision
            live = slice(0, batch.num_rows)
            self._rows = Rows(
                batch.token_ids[live], batch.lengths[live], batch.source_lengths[live], batch.limits[live]
            )
            wanted = [strategy.fetch(batch) for strategy in self._strategies.values()]
            self._fetch = Fetch(*(max(values) for values in zip(*wanted, strict=True)))
        return self._fetch
