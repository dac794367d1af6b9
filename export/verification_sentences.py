"""The sentences that an export is verified on: golden ones in words, and random ones in token ids."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from export.golden_texts import GOLDEN_TEXTS
from export.importers.imported import ImportedCheckpoint
from service.bundle.manifest import LanguagePair
from service.text.tokenizers import Tokenizer

MAX_GOLDEN_PAIRS = 64
NUM_RANDOM_SENTENCES = 16
MAX_RANDOM_SOURCE_TOKENS = 64
MAX_GOLDEN_OUTPUT_TOKENS = 96
MAX_RANDOM_OUTPUT_TOKENS = 24  # nonsense seldom ends by itself
SEED = 20261120


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence to verify on; random ones have no text."""

    languages: LanguagePair
    source_ids: tuple[int, ...]
    max_output_tokens: int
    text: str | None = None

    def __str__(self) -> str:
        return repr(self.text) if self.text is not None else f"random sentence {list(self.source_ids)}"


def golden_sentences(checkpoint: ImportedCheckpoint, tokenizer: Tokenizer) -> Iterator[Sentence]:
    """The golden texts that fit the model, for every language pair (fewer of each where there are many pairs)."""
    limit = min(MAX_GOLDEN_OUTPUT_TOKENS, checkpoint.limits.max_output_tokens)
    texts_per_pair = max(1, MAX_GOLDEN_PAIRS // len(checkpoint.languages))
    for languages in checkpoint.languages[:MAX_GOLDEN_PAIRS]:
        for text in GOLDEN_TEXTS[:texts_per_pair]:
            ids = checkpoint.tokenizer.source_ids(tokenizer.encode(text), languages.source_prefix_ids)
            if len(ids) <= checkpoint.limits.max_source_tokens:
                yield Sentence(languages, ids, limit, text)


def random_sentences(checkpoint: ImportedCheckpoint) -> Iterator[Sentence]:
    """Ordinary tokens drawn at random, of all lengths; the same ones each time."""
    rng = np.random.default_rng(SEED)
    spec, config = checkpoint.tokenizer, checkpoint.model.config
    limit = min(MAX_RANDOM_OUTPUT_TOKENS, checkpoint.limits.max_output_tokens)
    special = {spec.pad_id, spec.eos_id, spec.decoder_start_id, *checkpoint.suppressed_ids, *spec.source_ids((), ())}
    ordinary = np.setdiff1d(np.arange(config.source_vocabulary_size), list(special))
    for languages in itertools.islice(itertools.cycle(checkpoint.languages), NUM_RANDOM_SENTENCES):
        room = checkpoint.limits.max_source_tokens - len(languages.source_prefix_ids) - 1
        drawn = rng.choice(ordinary, rng.integers(1, max(1, min(MAX_RANDOM_SOURCE_TOKENS, room)), endpoint=True))
        ids = spec.source_ids([int(token_id) for token_id in drawn], languages.source_prefix_ids)
        yield Sentence(languages, ids, limit)
