"""The sentences that an export is verified on: golden ones as text, and random ones as token ids."""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.verification_texts import ALIGNMENT_TEXTS, GOLDEN_TEXTS, SYMBOL_TEXTS
from service.bundle.manifest_parts import LanguagePair
from service.text.tokenizers import Tokenizer, of_pair

NUM_SYMBOLS = 4  # used by the alignment texts
NUM_GOLDEN = 64  # at most
NUM_RANDOM_SENTENCES = 16
MAX_RANDOM_SOURCE_TOKENS = 64
MAX_GOLDEN_OUTPUT_TOKENS = 96
MAX_RANDOM_OUTPUT_TOKENS = 24  # random input seldom ends by itself
# Tokens of all sentences of a kind, times the model's weights. Models of 75 M weights between two languages get all
# sentences; NLLB-600M some 300 tokens, which decoders in float32 take some ten seconds for.
MAX_WORK = 2e11
LEAST_TOKENS = 300  # for larger models: fewer would say too little
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


def golden_sentences(
    checkpoint: ImportedCheckpoint, tokenizer: Tokenizer, own: Sequence[Sentence] = ()
) -> Iterator[Sentence]:
    """Yield golden texts that fit, for every language pair or some of many; large models get fewer (`bounded`).

    If the model does not read English, the user's `own` sentences take their place.
    """
    limit = min(MAX_GOLDEN_OUTPUT_TOKENS, checkpoint.limits.max_output_tokens)
    pairs = list(checkpoint.pairs())
    if own and not any(map(_is_english, pairs)):
        yield from bounded(own[:NUM_GOLDEN], _num_weights(checkpoint))
        return
    texts_per_pair = max(1, NUM_GOLDEN // len(pairs))
    chosen = pairs[:: max(1, len(pairs) // NUM_GOLDEN)][:NUM_GOLDEN]
    texts = itertools.cycle(GOLDEN_TEXTS) if texts_per_pair == 1 else iter(GOLDEN_TEXTS[:texts_per_pair] * len(chosen))
    given = [
        (languages, text)
        for languages in chosen
        for text in itertools.islice(texts, min(texts_per_pair, len(GOLDEN_TEXTS)))
    ]
    yield from bounded(_fitting(given, checkpoint, tokenizer, limit), _num_weights(checkpoint))


def alignment_sentences(checkpoint: ImportedCheckpoint, tokenizer: Tokenizer) -> Iterator[Sentence]:
    """Yield texts of which translations copy a lot, in English if the model supports it."""
    pairs = list(checkpoint.pairs())
    languages = next(filter(_is_english, pairs), pairs[0])
    symbols = checkpoint.tokenizer.reserved_symbols
    texts = [*GOLDEN_TEXTS, *ALIGNMENT_TEXTS]
    if len(symbols) >= NUM_SYMBOLS:
        texts += [text.format(*symbols) for text in SYMBOL_TEXTS]
    limit = min(MAX_GOLDEN_OUTPUT_TOKENS, checkpoint.limits.max_output_tokens)
    given = [(languages, text) for text in texts]
    yield from bounded(_fitting(given, checkpoint, tokenizer, limit), _num_weights(checkpoint))


def lines_of(file: Path, checkpoint: ImportedCheckpoint, tokenizer: Tokenizer) -> Iterator[Sentence]:
    """Yield the lines of a UTF-8 text file that fit the model, as texts of its first language pair."""
    try:
        texts = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise CheckpointError(file, [f"it is not a UTF-8 text file: {error}"]) from error
    languages = next(checkpoint.pairs())
    given = [(languages, text) for text in texts if text.strip()]
    limit = min(MAX_GOLDEN_OUTPUT_TOKENS, checkpoint.limits.max_output_tokens)
    yield from _fitting(given, checkpoint, tokenizer, limit)


def bounded(sentences: Sequence[Sentence], num_weights: int) -> list[Sentence]:
    """Return as many of them, evenly spread, as `MAX_WORK` or `LEAST_TOKENS` allow for a model of this size.

    It is at least one. If not all are allowed, half of what is saved comes from fewer sentences, half from shorter
    outputs.
    """
    room = max(MAX_WORK / num_weights, LEAST_TOKENS)
    work = sum(map(_num_tokens, sentences))
    if work <= room:
        return list(sentences)
    share = math.sqrt(room / work)
    shorter = [
        dataclasses.replace(each, max_output_tokens=max(1, int(share * each.max_output_tokens))) for each in sentences
    ]
    for count in range(len(shorter), 1, -1):
        chosen = [shorter[index * len(shorter) // count] for index in range(count)]
        if sum(map(_num_tokens, chosen)) <= room:
            return chosen
    return shorter[:1]


def _fitting(
    given: Sequence[tuple[LanguagePair, str]], checkpoint: ImportedCheckpoint, tokenizer: Tokenizer, limit: int
) -> list[Sentence]:
    encoded = (
        (languages, checkpoint.tokenizer.source_ids(of_pair(tokenizer, languages).encode(text), languages), text)
        for languages, text in given
    )
    return [
        Sentence(languages, ids, limit, text)
        for languages, ids, text in encoded
        if len(ids) <= checkpoint.limits.max_source_tokens
    ]


def _is_english(pair: LanguagePair) -> bool:
    return pair.source_language_code.lower().startswith("en")


def _num_tokens(sentence: Sentence) -> int:
    return len(sentence.source_ids) + sentence.max_output_tokens


def _num_weights(checkpoint: ImportedCheckpoint) -> int:
    return checkpoint.model.num_weights


def random_sentences(checkpoint: ImportedCheckpoint) -> Iterator[Sentence]:
    """Yield ordinary tokens drawn at random, of all lengths; the same ones on every run."""
    rng = np.random.default_rng(SEED)
    spec, config = checkpoint.tokenizer, checkpoint.model.config
    limit = min(MAX_RANDOM_OUTPUT_TOKENS, checkpoint.limits.max_output_tokens)
    special = {spec.pad_id, spec.eos_id, spec.source_eos_id, spec.decoder_start_id, *checkpoint.suppressed_ids}
    ordinary = np.setdiff1d(np.arange(config.source_vocabulary_size), [i for i in special if i is not None])
    sentences = []
    for languages in itertools.islice(itertools.cycle(checkpoint.pairs()), NUM_RANDOM_SENTENCES):
        room = checkpoint.limits.max_source_tokens - len(spec.source_ids((), languages))
        drawn = rng.choice(ordinary, rng.integers(1, max(1, min(MAX_RANDOM_SOURCE_TOKENS, room)), endpoint=True))
        sentences.append(Sentence(languages, spec.source_ids(map(int, drawn), languages), limit))
    yield from bounded(sentences, _num_weights(checkpoint))
