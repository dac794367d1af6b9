"""The tiny bundle in int8, for tests of what a server does on it. Making one takes seconds."""

import shutil
import sys
from pathlib import Path

from export.convert import write_bundle
from export.importers.imported import ImportedCheckpoint
from service.bundle.manifest import Manifest
from tests.export.tiny_models import tiny_config, tiny_model
from tests.tiny_bundle import MAX_OUTPUT_TOKENS, MAX_SOURCE_TOKENS, write_tiny_bundle


def write_tiny_fused_bundle(directory: Path) -> Path:
    """Write a bundle like `write_tiny_bundle`'s, but of another model."""
    tiny = directory.with_name("plain")
    like = Manifest.load(write_tiny_bundle(tiny))
    config = tiny_config(
        source_vocabulary_size=like.model.vocabulary_size,
        target_vocabulary_size=like.model.vocabulary_size,
        max_source_positions=MAX_SOURCE_TOKENS,
        max_target_positions=MAX_OUTPUT_TOKENS + 1,
        decoder_start_id=like.tokenizer.decoder_start_id,
    )

    def load() -> ImportedCheckpoint:
        return ImportedCheckpoint(
            name=like.name,
            model=tiny_model(config, seed=1, end_bias=-1.5).stored(),  # whose outputs are as long as those of the other
            tokenizer=like.tokenizer,
            tokenizer_files={like.tokenizer.file: tiny / like.tokenizer.file},
            languages=like.languages,
            any_to_any=like.any_to_any,
            limits=like.limits,
            checkpoint_sha256=like.checkpoint_sha256,
            generation=like.generation,
        )

    write_bundle(load, directory, precision="int8")
    shutil.rmtree(tiny)
    return directory


if __name__ == "__main__":
    write_tiny_fused_bundle(Path(sys.argv[1]))
