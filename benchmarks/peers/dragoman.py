"""Our engine as it serves, without network and text."""

import threading
import time
from collections.abc import Sequence as Sequence_
from pathlib import Path

from benchmarks.peers.peer import PeerSettings
from benchmarks.workload import Task, length_penalty_of
from service.bundle.manifest import Manifest
from service.domain.translation import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import SessionConfig
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from service.engine.stats import TurnStats

MAX_SLOTS = 128
STOP_SECONDS = 60.0


class DragomanPeer:
    """A bundle on the engine's own thread; a batch is submitted at once and awaited."""

    def __init__(self, settings: PeerSettings) -> None:
        directory = Path(settings.folder)
        manifest = Manifest.load(directory)
        config = EngineConfig(max_slots=settings.options.get("max_slots", MAX_SLOTS))
        session = SessionConfig(
            intra_op_threads=settings.options["intra_op_threads"], allow_spinning=settings.options["allow_spinning"]
        )
        self._updates = Updates()
        self._prefix = manifest.first_pair.target_prefix_ids
        self._engine = Engine(OnnxRunner.load_lanes(directory, manifest, config, session), config, self._updates)
        self._engine.start()

    def translate(self, batch: Sequence_[Sequence_[int]], task: Task) -> list[list[int]]:
        """As `Peer.translate`. A fixed output length must be the bundle's own: its end token is suppressed."""
        now = time.monotonic()
        sequences = [
            Sequence(
                request_id="bench",
                source_ids=tuple(ids),
                options=DecodingOptions(
                    beam_size=task.beam_size,
                    length_penalty=length_penalty_of(number),
                    num_hypotheses=1,
                    max_output_tokens=task.max_output_tokens,
                ),
                arrived_seconds=now,
                target_prefix_ids=self._prefix,
            )
            for number, ids in enumerate(batch)
        ]
        self._engine.submit(sequences)
        outputs = []
        for update in self._updates.wait_for(sequences):
            if update.error is not None:
                raise update.error
            outputs.append(list(update.hypotheses[0].token_ids))
        return outputs

    def close(self) -> None:
        """As `Peer.close`."""
        self._engine.stop(STOP_SECONDS)


class Updates:
    """An `EngineListener` that lets another thread wait for sequences' ends, waking it once."""

    def __init__(self) -> None:
        self._updates: dict[Sequence, SequenceUpdate] = {}
        self._num_awaited = 0
        self._changed = threading.Condition()

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        """As `EngineListener.on_updates`."""
        with self._changed:
            self._updates.update((update.sequence, update) for update in updates)
            if len(self._updates) >= self._num_awaited:
                self._changed.notify_all()

    def on_turn(self, stats: TurnStats) -> None:
        """Of no interest here."""

    def on_failure(self, error: BaseException) -> None:
        """All sequences have had their update before this."""

    def wait_for(self, sequences: Sequence_[Sequence]) -> list[SequenceUpdate]:
        """The updates of all sequences that were submitted since the last call."""
        with self._changed:
            self._num_awaited = len(sequences)
            self._changed.wait_for(lambda: len(self._updates) >= len(sequences))
            return [self._updates.pop(sequence) for sequence in sequences]
