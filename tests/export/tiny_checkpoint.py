"""A native checkpoint folder with a tiny model and a tokenizer trained on the golden texts."""

from pathlib import Path

from export.importers.native.folder import TOKENIZER_NAME, CheckpointInfo
from export.training.checkpoint import save_checkpoint
from export.training.recipe import TokenizerRecipe
from export.training.tokenizer import train_tokenizer
from export.verification_texts import GOLDEN_TEXTS
from tests.export.tiny_models import tiny_config, tiny_model

VOCABULARY_SIZE = 150
INFO = CheckpointInfo("tiny", "en", "de", max_source_tokens=64, max_output_tokens=48)


def write_tiny_checkpoint(directory: Path) -> Path:
    """Write the checkpoint; its weights are random, so translations are nonsense of different lengths."""
    recipe = TokenizerRecipe(vocabulary_size=VOCABULARY_SIZE, num_reserved_symbols=4, character_coverage=1.0)
    tokenizer = directory.parent / f"{directory.name}.model"
    train_tokenizer([*GOLDEN_TEXTS, *map(str.lower, GOLDEN_TEXTS)], recipe, tokenizer, seed=1)
    config = tiny_config(
        source_vocabulary_size=VOCABULARY_SIZE,
        target_vocabulary_size=VOCABULARY_SIZE,
        d_ff=50,  # widths that are awkward for kernels, and differ between the two sides
        decoder_d_ff=51,
    )
    save_checkpoint(tiny_model(config, seed=1, end_bias=1.5), INFO, tokenizer, directory)
    assert (directory / TOKENIZER_NAME).exists()
    return directory
