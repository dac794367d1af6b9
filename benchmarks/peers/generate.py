"""transformers' `generate` on our weights, float32."""

from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.models import load_transformer
from benchmarks.peers.peer import PeerSettings
from benchmarks.workload import Task
from service.domain.options import DecodingOptions
from tests.references.m2m100 import generate, to_m2m100


class GeneratePeer:
    """An M2M100 model in torch."""

    def __init__(self, settings: PeerSettings) -> None:
        torch.set_num_threads(settings.options["threads"])
        self._model = to_m2m100(load_transformer(Path(settings.folder)))

    def translate(self, batch: Sequence[Sequence[int]], task: Task) -> list[list[int]]:
        """Translate as in `Peer.translate`."""
        options = DecodingOptions(
            beam_size=task.beam_size,
            length_penalty=1.0,
            num_hypotheses=1,
            max_output_tokens=task.max_output_tokens,
        )
        config = self._model.config
        never = [config.bos_token_id, config.pad_token_id]
        if task.min_output_tokens:
            never.append(config.eos_token_id)
        return [list(output.token_ids[0]) for output in generate(self._model, batch, options, never)]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
