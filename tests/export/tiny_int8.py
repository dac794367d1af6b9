"""The int8 graphs of a small Transformer, calibrated on random sentences; without a tokenizer, not a whole bundle."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from export.architecture import Transformer
from export.graphs.dense import padded_head_size
from export.graphs.tracing import trace_decoder_step, trace_encoder
from export.quantization.calibration import observe
from export.quantize import write_graphs
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair, Limits, ModelShape, TokenizerSpec
from tests.export.tiny_models import random_sources


def write_tiny_int8(
    model: Transformer, directory: Path, suppressed_ids: Sequence[int] = (), *, renormalizes: bool = False
) -> Manifest:
    """Write the plain int8 graphs of `model` to `directory` and its float32 ones beside them; return a manifest."""
    config = model.config
    source = directory / "float32"
    source.mkdir(parents=True)
    manifest = Manifest(
        name="tiny",
        model=ModelShape(
            config.num_decoder_layers,
            config.num_heads,
            padded_head_size(config.head_size),
            config.target_vocabulary_size,
        ),
        tokenizer=TokenizerSpec("none", "", config.pad_id, config.eos_id, config.unk_id, config.decoder_start_id),
        languages=(LanguagePair("en", "de"),),
        limits=Limits(config.max_source_positions, config.max_target_positions),
        golden=(),
        checksums={},
        checkpoint_sha256="",
        suppressed_ids=tuple(suppressed_ids),
        renormalizes=renormalizes,
    )
    trace_encoder(model, source / manifest.graphs.encoder)
    trace_decoder_step(model, suppressed_ids, source / manifest.graphs.decoder_step, renormalizes=renormalizes)
    lengths = [3, 7, 12, 20, 5, 9]
    targets = np.random.default_rng(0).integers(4, config.target_vocabulary_size, (len(lengths), 12)).tolist()
    rows = [
        (ids, (config.decoder_start_id, *target))
        for ids, target in zip(random_sources(config.source_vocabulary_size, lengths, seed=5), targets, strict=True)
    ]
    write_graphs(source, directory, manifest, observe(source, manifest, rows), "largest")
    return manifest
