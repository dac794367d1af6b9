"""Verifies that the exported graphs compute what the model computes, before a bundle is written."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from export.alignment import AlignmentHeads, Translated
from export.alignment_choice import ByLayer, mean_of
from export.architecture.streamed import StreamedTransformer
from export.engine_decode import decode_golden
from export.graphs.execution import AlignmentRun, GraphPair, decode_cached
from export.importers.imported import ImportedCheckpoint
from export.stages import progress
from export.verification_sentences import Sentence, golden_sentences, random_sentences
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import GoldenPair
from service.domain.errors import counted
from service.text.tokenizers import Tokenizer, of_pair

MAX_RELATIVE_ERROR = 1e-3  # of the range of logits at a position
TIE_GAP = 1e-4  # logits that are closer may be ranked either way, depending on the order of summation
MAX_RELATIVE_ERROR_FLOAT16 = 5e-2  # 13 bits less; 6e-4 on the shipped model, 4e-2 on large random weights
BATCH_SIZE = 16
# For larger vocabularies, only this many of the most probable tokens are compared: sorting 256,000 of them takes longer
# than the step.
MAX_COMPARED_TOKENS = 16_384

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating]


class VerificationError(Exception):
    """The graphs disagree with the model; the message names the first position where they do."""


@dataclass(slots=True)
class VerificationReport:
    """The numbers of compared positions and sentences, and the errors.

    `max_error` is the largest difference of two log-probabilities, `max_relative_error` the largest one divided by its
    position's range of logits. `num_ties` counts positions where the graphs chose another token because the two best
    logits are closer than `tie_gap`.
    """

    num_golden: int = 0
    num_random: int = 0
    num_positions: int = 0
    max_error: float = 0.0
    max_relative_error: float = 0.0
    num_ties: int = 0
    golden: list[GoldenPair] = field(default_factory=list)
    max_relative_error_allowed: float = MAX_RELATIVE_ERROR

    @property
    def tie_gap(self) -> float:
        """Return the gap of the two best logits below which either may win: errors of this size were observed."""
        return max(TIE_GAP, 2.0 * self.max_error)

    def lines(self) -> list[str]:
        return [
            f"compared {self.num_golden} golden and {self.num_random} random sentences, {self.num_positions} positions",
            f"the model against the graphs: largest error {self.max_error:.2e}, "
            f"{self.max_relative_error:.2e} of the logits' range (allowed {self.max_relative_error_allowed:.0e})",
            "cached in mixed batches against full re-decoding: same greedy tokens, "
            f"{counted(self.num_ties, 'tie')} excepted",
        ]

    def document(self) -> dict[str, float | int]:
        return {name: value for name, value in asdict(self).items() if name != "golden"}


@dataclass(frozen=True, slots=True)
class _Decoded:
    """A sentence with the graphs' greedy output (T), and the best tokens at each position, (T, K) each."""

    sentence: Sentence
    output: tuple[int, ...]
    candidate_ids: Ids
    log_probs: Floats


def verify(
    checkpoint: ImportedCheckpoint,
    graphs: GraphPair,
    tokenizer: Tokenizer,
    precision: str = "float32",
) -> VerificationReport:
    """Compare the graphs with the model on golden and random sentences in batches of mixed lengths.

    The graphs decode greedily with their caches. The model then reads each whole output at once, alone and without a
    cache: its best token at every position must be the output's next one, so re-decoding gives the same output; and
    log-probabilities must be close. The report holds the golden pairs for the manifest, in the texts' order.
    """
    golden = list(golden_sentences(checkpoint, tokenizer))
    sentences = golden + list(random_sentences(checkpoint))
    report = VerificationReport(num_golden=len(golden), num_random=len(sentences) - len(golden))
    if precision == "float16":
        report.max_relative_error_allowed = MAX_RELATIVE_ERROR_FLOAT16
    outputs: dict[Sentence, tuple[int, ...]] = {}
    num_batches = -(-len(sentences) // BATCH_SIZE)
    for number in progress(range(num_batches), "verify"):
        # A stride through the list mixes golden and random, short and long sentences in each batch.
        for decoded in _decode(checkpoint, graphs, sentences[number::num_batches]):
            outputs[decoded.sentence] = decoded.output
            report.num_positions += len(decoded.output)
            _compare(checkpoint, decoded, report)
    if not report.max_relative_error < report.max_relative_error_allowed:
        raise VerificationError(
            f"the graphs' largest error is {report.max_error:.3g}, {report.max_relative_error:.3g} of the logits' "
            f"range; allowed: {report.max_relative_error_allowed:.0e}."
        )
    eos_id = checkpoint.tokenizer.eos_id
    complete = [sentence for sentence in golden if outputs[sentence][-1] == eos_id]
    report.golden = [golden_pair(sentence, outputs[sentence], tokenizer, eos_id) for sentence in complete or golden]
    return report


def verify_engine(directory: Path, manifest: Manifest) -> None:
    """Translate the golden sentences with the engine that will serve the bundle, all at once, and compare."""
    for golden, given in zip(manifest.golden, decode_golden(directory, manifest), strict=True):
        expected = golden.output_ids
        if given != expected:
            position = first_difference(expected, given)
            raise VerificationError(
                f"{golden.text!r}, position {position}: the engine gives {given[position : position + 1]}, "
                f"the model {expected[position : position + 1]}; the tokens before it are the same."
            )


def translate(checkpoint: ImportedCheckpoint, graphs: GraphPair, sentences: Sequence[Sentence]) -> Iterator[Translated]:
    eos_id = checkpoint.tokenizer.eos_id
    for start in range(0, len(sentences), BATCH_SIZE):
        batch = sentences[start : start + BATCH_SIZE]
        rows = [(each.source_ids, each.languages.target_prefix_ids, each.max_output_tokens) for each in batch]
        for sentence, output in zip(batch, decode_cached(graphs, checkpoint.tokenizer, rows), strict=True):
            ended = output[:-1] if output[-1] == eos_id else output
            yield Translated(sentence.text or "", sentence.languages, sentence.source_ids, ended)


def verify_alignment(
    checkpoint: ImportedCheckpoint,
    run: AlignmentRun,
    heads: AlignmentHeads,
    translated: Sequence[Translated],
    by_layer: Sequence[ByLayer],
    precision: str = "float32",
) -> float:
    """Compare the alignment graph with the model's attention in batches of mixed lengths; return the largest error."""
    allowed = MAX_RELATIVE_ERROR_FLOAT16 if precision == "float16" else MAX_RELATIVE_ERROR
    largest = 0.0
    readable = [(each, own) for each, own in zip(translated, by_layer, strict=True) if each.target_ids]
    num_batches = -(-len(readable) // BATCH_SIZE)
    for number in range(num_batches):
        batch = readable[number::num_batches]
        sources, targets = [each.source_ids for each, _ in batch], [each.target_ids for each, _ in batch]
        given = run.attention(sources, targets, checkpoint.tokenizer.pad_id)
        for (each, own), attention in zip(batch, given, strict=True):
            error = float(np.abs(attention - mean_of(own, heads)).max())
            if not error < allowed:
                raise VerificationError(
                    f"{each.text!r}: the alignment graph's attention is up to {error:.3g} off the model's; "
                    f"allowed: {allowed:.0e}."
                )
            largest = max(largest, error)
    return largest


def golden_pair(sentence: Sentence, output: tuple[int, ...], tokenizer: Tokenizer, eos_id: int) -> GoldenPair:
    """Return a golden sentence with its output, which includes the end-of-sentence token if it was reached."""
    is_ended = output[-1] == eos_id
    return GoldenPair(
        source_language_code=sentence.languages.source_language_code,
        target_language_code=sentence.languages.target_language_code,
        text=sentence.text or "",
        source_ids=sentence.source_ids,
        output_ids=output,
        translation=of_pair(tokenizer, sentence.languages).decode(output[:-1] if is_ended else output),
    )


def _decode(checkpoint: ImportedCheckpoint, graphs: GraphPair, sentences: Sequence[Sentence]) -> Iterator[_Decoded]:
    """Translate a batch with the caches, then feed it again for the log-probabilities at every position."""
    spec, config = checkpoint.tokenizer, checkpoint.model.config
    rows = [(each.source_ids, each.languages.target_prefix_ids, each.max_output_tokens) for each in sentences]
    outputs = decode_cached(graphs, spec, rows)
    fed = [(*_forced(checkpoint, each), *output[:-1]) for each, output in zip(sentences, outputs, strict=True)]
    num_steps = max(map(len, fed))
    num_candidates = min(config.target_vocabulary_size, MAX_COMPARED_TOKENS)
    state = graphs.start([each.source_ids for each in sentences], spec.pad_id, num_steps)
    steps = [
        state.candidates(np.array([ids[step] if step < len(ids) else spec.pad_id for ids in fed]), num_candidates)
        for step in range(num_steps)
    ]
    for row, (sentence, output) in enumerate(zip(sentences, outputs, strict=True)):
        chosen = steps[len(fed[row]) - len(output) : len(fed[row])]
        yield _Decoded(
            sentence,
            output,
            candidate_ids=np.stack([ids[row] for ids, _ in chosen]),
            log_probs=np.stack([log_probs[row] for _, log_probs in chosen]),
        )


def _forced(checkpoint: ImportedCheckpoint, sentence: Sentence) -> tuple[int, ...]:
    return (checkpoint.tokenizer.decoder_start_id, *sentence.languages.target_prefix_ids)


def logits_along(checkpoint: ImportedCheckpoint, sentence: Sentence, output: Sequence[int]) -> Floats:
    """Return the model's logits (T, V) for every token of an output, given those before it."""
    forced = _forced(checkpoint, sentence)
    model = StreamedTransformer(checkpoint.model.config, checkpoint.model.weights)
    hidden = model.hidden([sentence.source_ids], [[*forced, *output[:-1]]])[0, len(forced) - 1 :]
    return np.concatenate(list(model.logits(hidden)), axis=1)


def normalized_logits(checkpoint: ImportedCheckpoint, logits: Floats) -> npt.NDArray[np.float64]:
    """Return log-probabilities (n, V) in float64 of logits (n, V), including those of suppressed tokens."""
    wide = logits.astype(np.float64)
    shared_by = wide.copy()
    if checkpoint.renormalizes:
        shared_by[:, list(checkpoint.suppressed_ids)] = -np.inf
    largest = shared_by.max(axis=1, keepdims=True)
    totals = np.log(np.exp(shared_by - largest).sum(axis=1, keepdims=True)) + largest
    log_probs: npt.NDArray[np.float64] = wide - totals
    return log_probs


def _compare(checkpoint: ImportedCheckpoint, decoded: _Decoded, report: VerificationReport) -> None:
    sentence, suppressed = decoded.sentence, list(checkpoint.suppressed_ids)
    logits = logits_along(checkpoint, sentence, decoded.output)
    allowed = logits.copy()
    allowed[:, suppressed] = -np.inf
    expected_log_probs = normalized_logits(checkpoint, logits)
    for position, token_id in enumerate(decoded.output):
        where = f"{sentence}, position {position}"
        ids, log_probs = decoded.candidate_ids[position], decoded.log_probs[position]
        if not np.array_equal(np.isneginf(log_probs), np.isin(ids, suppressed)):
            raise VerificationError(f"{where}: tokens of probability zero are not just the suppressed ones.")
        expected = expected_log_probs[position][ids]
        error = float(np.abs(log_probs - expected)[~np.isneginf(log_probs)].max())
        if not np.isfinite(error):
            raise VerificationError(f"{where}: a log-probability is not a number.")
        value_range = float(logits[position].max() - logits[position].min())
        report.max_error = max(report.max_error, error)
        report.max_relative_error = max(report.max_relative_error, error / value_range)
        best = int(allowed[position].argmax())
        if best == token_id:
            continue
        if float(allowed[position, best] - allowed[position, token_id]) >= report.tie_gap:
            raise VerificationError(
                f"{where}: the graphs chose token {token_id} with the cache, the model {best} without; "
                "the tokens before it are the same."
            )
        report.num_ties += 1


def first_difference(expected: Sequence[int], given: Sequence[int]) -> int:
    return next(i for i, (a, b) in enumerate(itertools.zip_longest(expected, given)) if a != b)


def top_two_gap(logits: Floats, suppressed_ids: Sequence[int]) -> float:
    """Return the gap between the best and the second best allowed token of (V,)."""
    second, best = np.partition(np.delete(logits, list(suppressed_ids)), -2)[-2:]
    return float(best - second)
