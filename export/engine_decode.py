"""Decodes with the service's own engine, all sentences in one running batch, exactly as a bundle is served."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from export.graphs.weights_file import has_large_weights
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.domain.translation import FinishReason
from service.engine.config import EngineConfig
from service.engine.generate import OfflineEngine, sequences_of
from service.engine.runtime.aligner import Pair
from service.engine.runtime.runners import Runners, open_runners
from service.engine.runtime.session import SessionConfig
from service.engine.sequence import Attention
from service.text.tokenizers import load_tokenizer, of_pair

ONE_LANE = 16  # slots: too few for a second worker, which would hold another copy of the weights


def open_engine(directory: Path, manifest: Manifest, max_slots: int = 32) -> OfflineEngine:
    opened, config = open_graphs(directory, manifest, max_slots)
    return OfflineEngine(opened.runners, config)


def open_graphs(directory: Path, manifest: Manifest, max_slots: int = 32) -> tuple[Runners, EngineConfig]:
    """Open a bundle's graphs on the CPU for any number of sequences at once; weights of gigabytes are not prepacked."""
    session_config = SessionConfig(prepacks_weights=not has_large_weights(directory))
    config = EngineConfig(max_slots=max_slots, max_waiting=1_000_000)
    return open_runners(directory, manifest, config, session_config), config


def greedy_options(manifest: Manifest, max_output_tokens: int | None = None) -> DecodingOptions:
    limit = manifest.limits.max_output_tokens if max_output_tokens is None else max_output_tokens
    return DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=limit)


def recorded_attention(engine: OfflineEngine, manifest: Manifest, pairs: Sequence[Pair]) -> list[Attention]:
    """Return the attention (T, S) that the decoder of an int8 bundle records while it reads translations.

    These are forced, a language's prefix included, and one token more is decoded, as some models record a token when
    they read it; at the model's limit, the last one is decoded instead.
    """
    limit = manifest.limits.max_output_tokens + manifest.longest_target_prefix
    sequences = []
    for source_ids, target_ids in pairs:
        options = dataclasses.replace(
            greedy_options(manifest, min(len(target_ids) + 1, limit)), min_output_tokens=len(target_ids)
        )
        (sequence,) = sequences_of([(source_ids, ())], options)
        given = tuple(target_ids[: limit - 1])
        sequences.append(dataclasses.replace(sequence, output_prefix_ids=given, wants_attention=True))
    found = [best.attention for best, *_ in engine.generate(sequences)]
    return [own[: len(pair[1])] for own, pair in zip(found, pairs, strict=True) if own is not None]


def decode_golden(directory: Path, manifest: Manifest) -> list[tuple[int, ...]]:
    """Return greedy output ids of the golden sentences, with the end token if it was reached, as in golden pairs."""
    prefixes = {
        (pair.source_language_code, pair.target_language_code): pair.target_prefix_ids for pair in manifest.pairs()
    }
    sequences = []
    for golden in manifest.golden:
        prefix = prefixes[golden.source_language_code, golden.target_language_code]
        options = greedy_options(manifest, manifest.golden_limit(golden))
        sequences += sequences_of([(golden.source_ids, prefix)], options)
    with open_engine(directory, manifest, max_slots=ONE_LANE) as engine:
        outputs = [best for best, *_ in engine.generate(sequences)]
    eos_id = manifest.tokenizer.eos_id
    return [
        (*output.token_ids, eos_id) if output.finish_reason is FinishReason.STOP else output.token_ids
        for output in outputs
    ]


def decode_texts(directory: Path, manifest: Manifest, texts: Sequence[str]) -> list[str]:
    """Translate texts of the first language pair greedily; what is too long is cut, not split."""
    pair = manifest.first_pair
    tokenizer = of_pair(load_tokenizer(manifest.tokenizer, directory), pair)
    longest, options = manifest.limits.max_source_tokens, greedy_options(manifest)
    sources = [manifest.source_ids(tokenizer.encode(text), pair)[-longest:] for text in texts]
    sequences = [
        sequence for source in sources for sequence in sequences_of([(source, pair.target_prefix_ids)], options)
    ]
    with open_engine(directory, manifest) as engine:
        return [tokenizer.decode(best.token_ids) for best, *_ in engine.generate(sequences)]
