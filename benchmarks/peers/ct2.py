"""CTranslate2 on our weights."""

from collections.abc import Sequence
from typing import Any

import ctranslate2

from benchmarks.peers.peer import PeerSettings
from benchmarks.peers.token_names import token_id, token_name
from benchmarks.workload import Task


class CT2Peer:
    """A `Translator`; a batch is split into one part per inter thread, so that all of them have work."""

    def __init__(self, settings: PeerSettings) -> None:
        self._num_workers: int = settings.options["inter_threads"]
        self._translator: Any = ctranslate2.Translator(
            settings.folder,
            device="cpu",
            compute_type=settings.precision,
            inter_threads=self._num_workers,
            intra_threads=settings.options["intra_threads"],
        )

    def translate(self, batch: Sequence[Sequence[int]], task: Task) -> list[list[int]]:
        """Translate as in `Peer.translate`."""
        results = self._translator.translate_batch(
            [[*map(token_name, ids)] for ids in batch],
            max_batch_size=-(-len(batch) // self._num_workers),
            beam_size=task.beam_size,
            length_penalty=1.0,
            max_decoding_length=task.max_output_tokens,
            min_decoding_length=task.min_output_tokens,
        )
        return [[*map(token_id, result.hypotheses[0])] for result in results]

    def close(self) -> None:
        """Close as in `Peer.close`."""
        self._translator.unload_model()
