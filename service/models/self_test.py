"""Proves on this very machine that a loaded bundle translates as its exporter saw it, and warms it up."""

import dataclasses
import itertools
import logging
import threading
import time
from collections.abc import Sequence as Sequence_

from service.bundle.manifest import BundleError, GoldenPair, LanguagePair, Manifest
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.runner import Runner
from service.engine.sequence import Sequence, SequenceUpdate
from service.engine.stats import TurnStats
from service.errors import ServiceError
from service.models.repository import FoundBundle
from service.text.languages import same_language
from service.text.tokenizers import Tokenizer
from service.translation import DecodingOptions

_LOG = logging.getLogger(__name__)

# Other CPUs round differently, and a tie may then fall to the other side: one golden output in five may differ.
_GOLDEN_PER_ALLOWED_DIFFERENCE = 5
_TIMEOUT_SECONDS = 300.0
_WARM_UP_TOKENS = 8
_WARM_UP_BEAM = 4


def self_test(bundle: FoundBundle, tokenizer: Tokenizer, runner: Runner, engine_config: EngineConfig) -> None:
    """Translate the golden sentences, all at once, and compare.

    Tokenizing must give the very same ids; of the outputs, one in five may differ.

    Raises:
        BundleError: too much differs, or decoding failed.
    """
    manifest, where = bundle.manifest, bundle.directory
    for golden in manifest.golden:
        _check_tokenizer(golden, _pair_of(golden, manifest), manifest, tokenizer, str(where))
    options = DecodingOptions(
        beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=manifest.limits.max_output_tokens
    )
    updates = _decode(
        [_sequence(golden, manifest, options) for golden in manifest.golden], runner, engine_config, where=str(where)
    )
    differing = [
        golden
        for golden, update in zip(manifest.golden, updates, strict=True)
        if update.hypotheses[0].token_ids != _without_eos(golden.output_ids, manifest.tokenizer.eos_id)
    ]
    for golden in differing:
        _LOG.warning("self-test of %s: the output for %r differs from the exporter's", where, golden.text)
    if len(differing) > len(manifest.golden) // _GOLDEN_PER_ALLOWED_DIFFERENCE:
        raise BundleError(
            f"{where} fails its self-test: {len(differing)} of {len(manifest.golden)} golden sentences come out "
            "differently. Export it again with 'make export'."
        )
    _LOG.info("self-test of %s: %d of %d as exported", where, len(updates) - len(differing), len(updates))


def warm_up(bundle: FoundBundle, runner: Runner, engine_config: EngineConfig) -> None:
    """Run a full batch and a beam for a few steps, so that the first callers don't pay for first times.

    Raises:
        BundleError: decoding failed.
    """
    manifest = bundle.manifest
    num_tokens = min(_WARM_UP_TOKENS, manifest.limits.max_output_tokens)
    beam_size = min(_WARM_UP_BEAM, engine_config.max_slots, manifest.model.vocabulary_size)
    greedy = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=num_tokens)
    beam = DecodingOptions(beam_size=beam_size, length_penalty=1.0, num_hypotheses=1, max_output_tokens=num_tokens)
    goldens = list(itertools.islice(itertools.cycle(manifest.golden), engine_config.max_slots))
    _decode([_sequence(golden, manifest, greedy) for golden in goldens], runner, engine_config, str(bundle.directory))
    _decode([_sequence(goldens[0], manifest, beam)], runner, engine_config, str(bundle.directory))


class _Collector:
    """An `EngineListener` that waits for a number of updates."""

    def __init__(self, num_expected: int) -> None:
        self.updates: dict[Sequence, SequenceUpdate] = {}
        self.done = threading.Event()
        self._num_expected = num_expected

    def on_updates(self, updates: list[SequenceUpdate]) -> None:
        self.updates.update((update.sequence, update) for update in updates)
        if len(self.updates) >= self._num_expected:
            self.done.set()

    def on_turn(self, stats: TurnStats) -> None:
        """Of no interest here."""

    def on_failure(self, error: BaseException) -> None:
        _LOG.error("the engine died during the self-test", exc_info=error)
        self.done.set()


def _decode(
    sequences: Sequence_[Sequence], runner: Runner, engine_config: EngineConfig, where: str
) -> list[SequenceUpdate]:
    """Run sequences to their end on an engine that lives only for this, and lets all of them wait."""
    collector = _Collector(len(sequences))
    config = dataclasses.replace(engine_config, max_waiting=max(engine_config.max_waiting, len(sequences)))
    engine = Engine(runner, config, collector)
    engine.start()
    try:
        engine.submit(sequences)
        finished = collector.done.wait(_TIMEOUT_SECONDS)
    except ServiceError as error:
        raise BundleError(f"{where} fails its self-test: {error}") from error
    finally:
        stopped = engine.stop(_TIMEOUT_SECONDS)
    updates = [collector.updates.get(sequence) for sequence in sequences]
    errors = [update.error for update in updates if update is not None and update.error is not None]
    if not finished or not stopped or None in updates or errors:
        reason = errors[0] if errors else f"no answer within {_TIMEOUT_SECONDS:g} s"
        raise BundleError(f"{where} fails its self-test: {reason}") from (errors[0] if errors else None)
    return [update for update in updates if update is not None]


def _sequence(golden: GoldenPair, manifest: Manifest, options: DecodingOptions) -> Sequence:
    return Sequence(
        request_id="self-test",
        source_ids=golden.source_ids,
        options=options,
        arrived_seconds=time.monotonic(),
        target_prefix_ids=_pair_of(golden, manifest).target_prefix_ids,
    )


def _pair_of(golden: GoldenPair, manifest: Manifest) -> LanguagePair:
    for pair in manifest.languages:
        if same_language(pair.source_language_code, golden.source_language_code) and same_language(
            pair.target_language_code, golden.target_language_code
        ):
            return pair
    raise BundleError(
        f"{manifest.name}: a golden pair is from {golden.source_language_code!r} to {golden.target_language_code!r}, "
        "which is not among its languages."
    )


def _check_tokenizer(
    golden: GoldenPair, pair: LanguagePair, manifest: Manifest, tokenizer: Tokenizer, where: str
) -> None:
    source_ids = (*pair.source_prefix_ids, *tokenizer.encode(golden.text), manifest.tokenizer.eos_id)
    output_ids = _without_eos(golden.output_ids, manifest.tokenizer.eos_id)
    if source_ids != golden.source_ids or tokenizer.decode(output_ids) != golden.translation:
        raise BundleError(
            f"{where} fails its self-test: its tokenizer reads or writes {golden.text!r} otherwise than at export. "
            "Export it again with 'make export'."
        )


def _without_eos(token_ids: tuple[int, ...], eos_id: int) -> tuple[int, ...]:
    return token_ids[:-1] if token_ids and token_ids[-1] == eos_id else token_ids
