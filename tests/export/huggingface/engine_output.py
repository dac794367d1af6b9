"""What the engine gives for a checkpoint's bundle."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from export.engine_decode import open_engine
from export.importers.imported import ImportedCheckpoint, Row
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions


def by_the_engine(
    bundle: Path, manifest: Manifest, checkpoint: ImportedCheckpoint, rows: Sequence[Row], **asked: Any
) -> list[tuple[int, ...]]:
    """Return a server's output for callers who ask for nothing, or for this, on a bundle with a checkpoint's settings.

    The graphs may be those of a checkpoint with other settings.
    """
    generation, limits = checkpoint.generation, checkpoint.limits
    manifest = dataclasses.replace(manifest, tokenizer=checkpoint.tokenizer, limits=limits, generation=generation)
    defaults: dict[str, Any] = {
        "beam_size": generation.beam_size,
        "length_penalty": generation.length_penalty,
        "num_hypotheses": 1,
        "max_output_tokens": limits.max_output_tokens,
        "stops_early": generation.stops_early,
        "forces_end": generation.forces_end,
        **generation.options,
    }
    with open_engine(bundle, manifest) as engine:
        return [best.token_ids for best, *_ in engine.decode(rows, DecodingOptions(**(defaults | asked)))]
