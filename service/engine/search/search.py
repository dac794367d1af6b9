"""The strategies of all running sequences: which one each follows, and what a run must compute for all of them."""

from collections.abc import Collection

from service.domain.options import DecodingOptions
from service.engine.batch import Batch
from service.engine.integrity import expect
from service.engine.runner import Fetch, RunnerSpec, RunOutput
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


class Search:
    """The strategies of a batch, each with its sequences."""

    def __init__(self, spec: RunnerSpec) -> None:
        self._spec = spec
        self._strategies: dict[_Kind, Strategy] = {}
        self._fetch = Fetch(next_ids=False, next_log_probs=False, num_candidates=0)
        self._revision = -1  # of the batch that `_fetch` is for

    @property
    def num_kept(self) -> int:
        """Return the number of sequences that strategies still hold."""
        return sum(len(list(strategy.sequences)) for strategy in self._strategies.values())

    def join(self, sequence: Sequence) -> None:
        """Assign a sequence that has joined the batch to its strategy."""
        kind = _kind(sequence.options)
        if kind not in self._strategies:
            self._strategies[kind] = new_strategy(sequence.options, self._spec)
        self._strategies[kind].join(sequence)

    def leave(self, sequence: Sequence) -> None:
        """Remove a sequence that leaves the batch, however it ended."""
        kind = _kind(sequence.options)
        strategy = self._strategies[kind]
        strategy.leave(sequence)
        if not strategy.sequences:
            del self._strategies[kind]

    def fetch(self, batch: Batch) -> Fetch:
        """Return what the next run has to compute."""
        if self._revision != batch.revision:
            self._revision = batch.revision
            wanted = [strategy.fetch(batch) for strategy in self._strategies.values()]
            self._fetch = Fetch(*(max(values) for values in zip(*wanted, strict=True)))
        return self._fetch

    def max_steps(self, batch: Batch) -> int:
        """Return how many steps the next run may make."""
        return min(strategy.max_steps(batch) for strategy in self._strategies.values())

    def advance(self, batch: Batch, output: RunOutput) -> Outcome:
        """Append a run's tokens to every running sequence; no sequence leaves the batch."""
        outcome = Outcome()
        for strategy in self._strategies.values():
            strategy.advance(batch, output, outcome)
        return outcome

    def certain(self, batch: Batch, sequence: Sequence) -> tuple[int, ...]:
        """See `Strategy.certain`."""
        return self._strategies[_kind(sequence.options)].certain(batch, sequence)

    def check_integrity(self, running: Collection[Sequence]) -> None:
        """Check that each running sequence follows one strategy, the one for its options, and that no others do.

        Raises:
            IntegrityError: the state is inconsistent; says how.
        """
        kept = [(kind, each) for kind, strategy in self._strategies.items() for each in strategy.sequences]
        expect({each for _, each in kept} <= set(running), "a search is kept of a sequence that has left")
        expect(len(kept) == len(running), f"{len(kept)} sequences follow a strategy, {len(running)} run")
        expect(all(_kind(each.options) == kind for kind, each in kept), "a sequence follows another one's strategy")
