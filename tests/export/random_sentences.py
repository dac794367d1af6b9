"""Sources of ordinary tokens, in all of a checkpoint's languages."""

import numpy as np

from export.importers.imported import ImportedCheckpoint
from export.verification_sentences import Sentence


def random_sentences(
    checkpoint: ImportedCheckpoint, count: int, max_output_tokens: int | None = None
) -> list[Sentence]:
    """Return sentences of up to 29 tokens, always the same ones; outputs have the checkpoint's limit, or another."""
    rng, spec, pairs = np.random.default_rng(5), checkpoint.tokenizer, list(checkpoint.pairs())
    special = {spec.pad_id, spec.eos_id, spec.source_eos_id, spec.decoder_start_id, *checkpoint.suppressed_ids}
    ordinary = [index for index in range(checkpoint.model.config.source_vocabulary_size) if index not in special]
    limit = max_output_tokens or checkpoint.limits.max_output_tokens
    sentences = []
    for number in range(count):
        pair = pairs[number * 7919 % len(pairs)]
        drawn = rng.choice(ordinary, rng.integers(1, 30))
        sentences.append(Sentence(pair, spec.source_ids(map(int, drawn), pair), limit))
    return sentences
