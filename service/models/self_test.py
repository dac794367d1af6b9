"""Verifies on this machine that a loaded bundle translates as it did at export."""

import dataclasses
import logging
import time
from collections.abc import Iterable
from collections.abc import Sequence as Sequence_

import numpy as np

from service.bundle.errors import CONVERT_AGAIN, BundleError, one_line
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import GoldenPair, LanguagePair
from service.domain.errors import ServiceError
from service.domain.options import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.generate import LONGEST_SECONDS, Hypotheses, OfflineEngine
from service.engine.runner import Runner
from service.engine.runtime.aligner import Aligner
from service.engine.sequence import Attention, Sequence
from service.models.language_pairs import LanguagePairs
from service.models.repository import FoundBundle
from service.text.tokenizers import Tokenizer, of_pair

_LOG = logging.getLogger(__name__)

# Other CPUs round differently, which may decide a tie otherwise: one golden output in five may differ.
_GOLDEN_PER_ALLOWED_DIFFERENCE = 5


def run_trial(
    sequences: Sequence_[Sequence], runners: Sequence_[Runner], engine_config: EngineConfig, where: str
) -> list[Hypotheses]:
    """Decode sequences to their ends; return hypotheses in order. `engine_config`'s limits on waiting don't apply."""
    config = dataclasses.replace(
        engine_config,
        max_waiting=max(engine_config.max_waiting, len(sequences)),
        max_queue_seconds=LONGEST_SECONDS,
        checks_integrity=False,  # only calls can bring the engine's state into disorder
    )
    try:
        with OfflineEngine(runners, config) as engine:
            return engine.generate(sequences, LONGEST_SECONDS)
    except TimeoutError as error:
        raise BundleError(f"{where} fails its self-test: no answer within {LONGEST_SECONDS:g} s") from error
    except ServiceError as error:
        raise BundleError(f"{where} fails its self-test: {one_line(error)}") from error


def self_test(
    bundle: FoundBundle,
    pairs: LanguagePairs,
    tokenizer: Tokenizer,
    runners: Sequence_[Runner],
    engine_config: EngineConfig,
) -> None:
    """Translate all golden sentences, and compare: the same token ids, and of five outputs one may differ."""
    manifest, where = bundle.manifest, bundle.directory
    pair_of = {golden: _pair_of(golden, pairs, bundle) for golden in manifest.golden}
    for golden in manifest.golden:
        _check_tokenizer(golden, pair_of[golden], manifest, tokenizer, str(where))
    sequences = [_sequence(golden, pair_of[golden], manifest.golden_limit(golden)) for golden in manifest.golden]
    outputs = run_trial(sequences, runners, engine_config, str(where))
    differing = [
        golden
        for golden, (best, *_) in zip(manifest.golden, outputs, strict=True)
        if best.token_ids != manifest.without_end(golden.output_ids)
    ]
    for golden in differing:
        _LOG.info("self-test of %s: the output for %r differs from the exporter's", where, golden.text)
    attention = [best.attention for best, *_ in outputs if best.attention is not None]
    if not _are_probabilities(attention) or len(attention) < manifest.records_attention * len(outputs):
        raise _bad_alignments(bundle)
    if len(differing) > len(manifest.golden) // _GOLDEN_PER_ALLOWED_DIFFERENCE:
        raise BundleError(
            f"{where} fails its self-test: {len(differing)} of {len(manifest.golden)} golden sentences come out "
            f"differently; {CONVERT_AGAIN}."
        )
    _LOG.info("self-test of %s: %d of %d as exported", where, len(outputs) - len(differing), len(outputs))


def check_aligner(bundle: FoundBundle, pairs: LanguagePairs, aligner: Aligner) -> None:
    """Align the golden pairs: if that fails, it would fail for callers."""
    manifest = bundle.manifest
    translated = []
    for golden in manifest.golden:
        prefix = _pair_of(golden, pairs, bundle).target_prefix_ids
        translated.append((golden.source_ids, (*prefix, *manifest.without_end(golden.output_ids))))
    try:
        aligned = aligner.align(translated)
    except Exception as error:  # ONNX Runtime's errors have no common base of their own
        raise BundleError(f"{bundle.directory} can't align: {one_line(error)}") from error
    if not _are_probabilities(aligned):
        raise _bad_alignments(bundle)


def _are_probabilities(aligned: Iterable[Attention]) -> bool:
    return all(np.allclose(attention.sum(axis=1), 1.0, atol=1e-2) for attention in aligned)


def _bad_alignments(bundle: FoundBundle) -> BundleError:
    return BundleError(
        f"{bundle.directory} fails its self-test: its alignments are not probabilities; {CONVERT_AGAIN}."
    )


def _sequence(golden: GoldenPair, pair: LanguagePair, max_output_tokens: int) -> Sequence:
    options = DecodingOptions(beam_size=1, length_penalty=1.0, num_hypotheses=1, max_output_tokens=max_output_tokens)
    return Sequence(
        source_ids=golden.source_ids,
        options=options,
        arrived_seconds=time.monotonic(),
        target_prefix_ids=pair.target_prefix_ids,
        wants_attention=True,
    )


def _pair_of(golden: GoldenPair, pairs: LanguagePairs, bundle: FoundBundle) -> LanguagePair:
    found = pairs.find(golden.source_language_code, golden.target_language_code)
    if found is None or found.distance:  # a pair of a similar language has other prefixes
        raise BundleError(
            f"{bundle.directory}: a golden pair is from {golden.source_language_code!r} to "
            f"{golden.target_language_code!r}, which is not among its languages."
        )
    return found.pair


def _check_tokenizer(
    golden: GoldenPair, pair: LanguagePair, manifest: Manifest, tokenizer: Tokenizer, where: str
) -> None:
    tokenizer = of_pair(tokenizer, pair)
    source_ids = manifest.source_ids(tokenizer.encode(golden.text), pair)
    output_ids = manifest.without_end(golden.output_ids)
    if source_ids != golden.source_ids or tokenizer.decode(output_ids) != golden.translation:
        raise BundleError(
            f"{where} fails its self-test: its tokenizer reads or writes {golden.text!r} differently than at export; "
            f"{CONVERT_AGAIN}."
        )
