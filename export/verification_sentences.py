"""The sentences that an export is verified on: golden ones as text, and random ones as token ids."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from export.alignment_texts import ALIGNMENT_TEXTS, SYMBOL_TEXTS
from export.golden_texts import GOLDEN_TEXTS
from export.importers.imported import CheckpointError, ImportedCheckpoint
from service.bundle.manifest_parts import LanguagePair
from service.text.tokenizers import Tokenizer

NUM_SYMBOLS = 4  # used by the alignment texts
NUM_GOLDEN = 64  # at most
NUM_RANDOM_SENTENCES = 16
MAX_RANDOM_SOURCE_TOKENS = 64
MAX_GOLDEN_OUTPUT_TOKENS = 96
MAX_RANDOM_OUTPUT_TOKENS = 24  # random input seldom ends by itself
# For large models, on which a token takes a tenth of a second, a quarter of that.
LARGE_PARAMETERS = 200_000_000
LARGE_SHARE = 4
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
    """Yield golden texts that fit the model, for every language pair; with many pairs, one text for some of them."""
    limit = min(MAX_GOLDEN_OUTPUT_TOKENS, checkpoint.limits.max_output_tokens)
    num_golden = NUM_GOLDEN // _thinned(checkpoint)
    pairs = list(checkpoint.pairs())
    texts_per_pair = max(1, num_golden // len(pairs))
    chosen = pairs[:: max(1, len(pairs) // num_golden)][:num_golden]
    texts = itertools.cycle(GOLDEN_TEXTS) if texts_per_pair == 1 else iter(GOLDEN_TEXTS[:texts_per_pair] * len(chosen))
    for languages in chosen:
        for text in itertools.islice(texts, min(texts_per_pair, len(GOLDEN_TEXTS))):
            ids = checkpoint.tokenizer.source_ids(tokenizer.encode(text), languages)
            if len(ids) <= checkpoint.limits.max_source_tokens:
                yield Sentence(languages, ids, limit // _thinned(checkpoint), text)


def alignment_sentences(checkpoint: ImportedCheckpoint, tokenizer: Tokenizer) -> Iterator[Sentence]:
    """Yield texts of which translations copy a lot, in English if the model supports it."""
    pairs = list(checkpoint.pairs())
    languages = next((pair for pair in pairs if pair.source_language_code.lower().startswith("en")), pairs[0])
    symbols = checkpoint.tokenizer.reserved_symbols
    texts = [*GOLDEN_TEXTS, *ALIGNMENT_TEXTS]
    if len(symbols) >= NUM_SYMBOLS:
        texts += [text.format(*symbols) for text in SYMBOL_TEXTS]
    limit = min(MAX_GOLDEN_OUTPUT_TOKENS, checkpoint.limits.max_output_tokens)
    for text in texts[:: _thinned(checkpoint)]:
        ids = checkpoint.tokenizer.source_ids(tokenizer.encode(text), languages)
        if len(ids) <= checkpoint.limits.max_source_tokens:
            yield Sentence(languages, ids, limit // _thinned(checkpoint), text)


def lines_of(file: Path, checkpoint: ImportedCheckpoint, tokenizer: Tokenizer) -> Iterator[Sentence]:
    """Yield the lines of a UTF-8 text file that fit the model, as texts of its first language pair.

    Raises:
        CheckpointError: the file can't be read.
    """
    try:
        texts = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise CheckpointError(file, [f"it is no text file in UTF-8: {error}"]) from error
    languages = next(checkpoint.pairs())
    for text in filter(str.strip, texts):
        ids = checkpoint.tokenizer.source_ids(tokenizer.encode(text), languages)
        if len(ids) <= checkpoint.limits.max_source_tokens:
            yield Sentence(languages, ids, min(MAX_GOLDEN_OUTPUT_TOKENS, checkpoint.limits.max_output_tokens), text)


def _thinned(checkpoint: ImportedCheckpoint) -> int:
    num_parameters = sum(parameter.numel() for parameter in checkpoint.model.parameters())
    return LARGE_SHARE if num_parameters > LARGE_PARAMETERS else 1


def random_sentences(checkpoint: ImportedCheckpoint) -> Iterator[Sentence]:
    """Yield ordinary tokens drawn at random, of all lengths; the same ones on every run."""
    rng = np.random.default_rng(SEED)
    spec, config = checkpoint.tokenizer, checkpoint.model.config
    limit = min(MAX_RANDOM_OUTPUT_TOKENS, checkpoint.limits.max_output_tokens)
    special = {spec.pad_id, spec.eos_id, spec.source_eos_id, spec.decoder_start_id, *checkpoint.suppressed_ids}
    ordinary = np.setdiff1d(np.arange(config.source_vocabulary_size), [i for i in special if i is not None])
    num_random = NUM_RANDOM_SENTENCES // _thinned(checkpoint)
    for languages in itertools.islice(itertools.cycle(checkpoint.pairs()), num_random):
        room = checkpoint.limits.max_source_tokens - len(languages.source_prefix_ids) - 1
        drawn = rng.choice(ordinary, rng.integers(1, max(1, min(MAX_RANDOM_SOURCE_TOKENS, room)), endpoint=True))
        yield Sentence(languages, spec.source_ids(map(int, drawn), languages), limit)
