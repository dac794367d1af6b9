"""Our engine as it is served, without network and text."""

import contextlib
import time
from collections.abc import Sequence as Sequence_
from pathlib import Path

from benchmarks.peers.peer import PeerSettings
from benchmarks.workload import Task, length_penalty_of
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.generate import OfflineEngine
from service.engine.runtime.session import SessionConfig
from service.engine.sequence import Sequence

MAX_SLOTS = 128


class DragomanPeer:
    """A bundle on the engine's own thread; a batch is submitted at once and awaited."""

    def __init__(self, settings: PeerSettings) -> None:
        directory = Path(settings.folder)
        manifest = Manifest.load(directory)
        config = EngineConfig(max_slots=settings.options.get("max_slots", MAX_SLOTS))
        session = SessionConfig(
            intra_op_threads=settings.options["intra_op_threads"], allow_spinning=settings.options["allow_spinning"]
        )
        self._prefix = manifest.first_pair.target_prefix_ids
        self._running = contextlib.ExitStack()
        self._engine = self._running.enter_context(OfflineEngine.open(directory, manifest, config, session))

    def translate(self, batch: Sequence_[Sequence_[int]], task: Task) -> list[list[int]]:
        """Translate as in `Peer.translate`. A fixed output length must be the bundle's: its end token is suppressed."""
        now = time.monotonic()
        sequences = [
            Sequence(
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
        return [list(best.token_ids) for best, *_ in self._engine.generate(sequences)]

    def close(self) -> None:
        """Close as in `Peer.close`."""
        self._running.close()
