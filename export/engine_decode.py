"""Decoding with the service's own engine, all sentences in one running batch: what a bundle gives when it is served."""

import threading
import time
from collections.abc import Sequence as Sequence_
from pathlib import Path

from export.graphs.external_data import has_external_data
from service.bundle.manifest import Manifest
from service.domain.translation import DecodingOptions, FinishReason
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import SessionConfig
from service.engine.sequence import DecodedHypothesis, Sequence, SequenceProgress, SequenceUpdate
from service.engine.stats import TurnStats

STOP_SECONDS = 60.0
ONE_LANE = 16  # slots: too few for a second lane, which would hold the weights once more


class EngineDecoder:
    """A bundle's graphs on an engine that lives as long as the `with` block."""

    def __init__(self, directory: Path, manifest: Manifest, max_slots: int = 32) -> None:
        config = EngineConfig(max_slots=max_slots, max_waiting=1_000_000)
        graphs = directory / manifest.graphs.encoder, directory / manifest.graphs.decoder_step
        # Weights of gigabytes are used as they are mapped from the file: no copy laid out for the kernels.
        session_config = SessionConfig(prepacks_weights=not has_external_data(*graphs))
        runners = OnnxRunner.load_lanes(directory, manifest, config, session_config)
        self._listener = _Listener()
        self._engine = Engine(runners, config, self._listener)

    def __enter__(self) -> "EngineDecoder":
        self._engine.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._engine.stop(STOP_SECONDS)

    def decode(
        self, rows: Sequence_[tuple[Sequence_[int], Sequence_[int]]], options: DecodingOptions
    ) -> list[tuple[DecodedHypothesis, ...]]:
        """Decode rows of (source ids, target prefix ids); of each, the hypotheses, best first.

        Raises:
            ServiceError: a sequence was refused or failed.
        """
        return self.wait(self.submit(rows, options))

    def submit(
        self, rows: Sequence_[tuple[Sequence_[int], Sequence_[int]]], options: DecodingOptions
    ) -> list[Sequence]:
        """Start decoding rows, beside those that run already.

        Raises:
            ServiceError: a sequence was refused.
        """
        sequences = [
            Sequence("export", tuple(source), options, time.monotonic(), target_prefix_ids=tuple(prefix))
            for source, prefix in rows
        ]
        self._engine.submit(sequences)
        return sequences

    def wait(self, sequences: Sequence_[Sequence]) -> list[tuple[DecodedHypothesis, ...]]:
        """The hypotheses of sequences that were submitted, best first; each can be waited for once.

        Raises:
            ServiceError: a sequence failed.
        """
        updates = self._listener.wait_for(sequences)
        for update in updates:
            if update.error is not None:
                raise update.error
        return [update.hypotheses for update in updates]


def greedy_options(manifest: Manifest, max_output_tokens: int | None = None) -> DecodingOptions:
    """Greedy search, up to the model's own limit by default."""
    limit = manifest.limits.max_output_tokens if max_output_tokens is None else max_output_tokens
    return DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=limit)


def decode_golden(directory: Path, manifest: Manifest) -> list[tuple[int, ...]]:
    """Greedy output ids of the golden sentences, all at once, as golden pairs hold them: with the end, if it came."""
    prefixes = {
        (pair.source_language_code, pair.target_language_code): pair.target_prefix_ids for pair in manifest.pairs()
    }
    with EngineDecoder(directory, manifest, max_slots=ONE_LANE) as decoder:
        sequences = []
        for golden in manifest.golden:
            prefix = prefixes[golden.source_language_code, golden.target_language_code]
            options = greedy_options(manifest, manifest.golden_limit(golden))
            sequences += decoder.submit([(golden.source_ids, prefix)], options)
        outputs = [best for best, *_ in decoder.wait(sequences)]
    eos_id = manifest.tokenizer.eos_id
    return [
        (*output.token_ids, eos_id) if output.finish_reason is FinishReason.STOP else output.token_ids
        for output in outputs
    ]


class _Listener:
    """An `EngineListener` that lets another thread wait for updates."""

    def __init__(self) -> None:
        self._updates: dict[Sequence, SequenceUpdate] = {}
        self._changed = threading.Condition()

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        with self._changed:
            self._updates.update((update.sequence, update) for update in updates)
            self._changed.notify_all()

    def on_turn(self, stats: TurnStats) -> None:
        """Of no interest here."""

    def on_failure(self, error: BaseException) -> None:
        """All sequences have had their update before this."""

    def wait_for(self, sequences: Sequence_[Sequence]) -> list[SequenceUpdate]:
        """Every sequence that an engine took gets its one update, so this ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._updates.keys() >= set(sequences))
            return [self._updates.pop(sequence) for sequence in sequences]
