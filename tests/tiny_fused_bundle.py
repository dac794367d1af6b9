"""The tiny bundle in int8 with fused graphs, for tests of what a server does on them. Making one takes seconds."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from export.bundle_writer import checksums
from export.fusing.bundle import write_fused
from export.graphs.alignment_graph import AlignmentHeads
from export.graphs.dense import padded_head_size
from export.graphs.tracing import trace_alignment, trace_decoder_step, trace_encoder
from export.quantization.calibration import observe
from export.quantize import write_graphs
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import ModelShape
from service.text.tokenizers import load_tokenizer
from tests.export.tiny_models import random_sources, tiny_config, tiny_model
from tests.tiny_bundle import MAX_OUTPUT_TOKENS, MAX_SOURCE_TOKENS, decode, write_tiny_bundle

_CALIBRATED_LENGTHS = (3, 7, 12, 20, 5, 9)


def write_tiny_fused_bundle(directory: Path) -> Path:
    """Write a bundle like `write_tiny_bundle`'s, but of another model, of which it has int8 graphs of both kinds."""
    tiny, source = directory.with_name("plain"), directory.with_name("float32")
    model_of_tiny = Manifest.load(write_tiny_bundle(tiny))
    config = tiny_config(
        source_vocabulary_size=model_of_tiny.model.vocabulary_size,
        target_vocabulary_size=model_of_tiny.model.vocabulary_size,
        max_source_positions=MAX_SOURCE_TOKENS,
        max_target_positions=MAX_OUTPUT_TOKENS + 1,
        decoder_start_id=model_of_tiny.tokenizer.decoder_start_id,
    )
    model = tiny_model(config, seed=1, end_bias=-1.5)  # whose outputs are as long as those of the other
    shape = ModelShape(
        config.num_decoder_layers, config.num_heads, padded_head_size(config.head_size), config.target_vocabulary_size
    )
    manifest = replace(model_of_tiny, model=shape)
    source.mkdir(parents=True)
    trace_encoder(model, source / manifest.graphs.encoder)
    trace_decoder_step(model, (), source / manifest.graphs.decoder_step)
    trace_alignment(model, AlignmentHeads(manifest.graphs.alignment_layer, (0,)), source / manifest.graphs.alignment)
    directory.mkdir()
    write_graphs(
        source, directory, manifest, observe(source, manifest, _rows(config.decoder_start_id, shape)), "largest"
    )
    shutil.copyfile(tiny / manifest.tokenizer.file, directory / manifest.tokenizer.file)
    fused = replace(manifest, precision="int8", graphs=write_fused(directory, manifest), checksums=checksums(directory))
    tokenizer = load_tokenizer(manifest.tokenizer, directory)
    outputs = decode(directory, fused, [golden.source_ids for golden in manifest.golden])
    golden = tuple(
        replace(each, output_ids=output, translation=tokenizer.decode(output))
        for each, output in zip(manifest.golden, outputs, strict=True)
    )
    replace(fused, golden=golden).save(directory)
    shutil.rmtree(tiny)
    shutil.rmtree(source)
    return directory


def _rows(start_id: int, shape: ModelShape) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return sources and what is read to translate them, for the calibration of the activations."""
    size = shape.vocabulary_size
    targets = np.random.default_rng(0).integers(4, size, (len(_CALIBRATED_LENGTHS), 12)).tolist()
    sources = random_sources(size, list(_CALIBRATED_LENGTHS), seed=5)
    return [(ids, (start_id, *target)) for ids, target in zip(sources, targets, strict=True)]


if __name__ == "__main__":
    write_tiny_fused_bundle(Path(sys.argv[1]))
