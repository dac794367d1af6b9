"""Proves that the exported graphs compute what the torch model computes, before a bundle is written."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from export.cached_decode import decode_cached
from export.engine_decode import decode_golden
from export.full_decode import FullDecoding, decode_fully
from export.graphs.execution import GraphPair
from export.importers.imported import ImportedCheckpoint
from export.verification_sentences import MAX_GOLDEN_OUTPUT_TOKENS, Sentence, golden_sentences, random_sentences
from service.bundle.manifest import GoldenPair, Manifest
from service.text.tokenizers import Tokenizer

MAX_RELATIVE_ERROR = 1e-3  # of a position's range of logits
TIE_GAP = 1e-4  # two logits that are closer may be ranked either way: the order of summation decides
MAX_RELATIVE_ERROR_FLOAT16 = 5e-2  # 13 bits less; 6e-4 on the shipped model, 4e-2 on large random weights
BATCH_SIZE = 16


class VerificationError(Exception):
    """The graphs disagree with the model; the message names the first place where they do."""


@dataclass(slots=True)
class VerificationReport:
    """What was compared and how close it was.

    `max_error` is the largest difference of two log-probabilities, `max_relative_error` the largest one divided by
    its position's range of logits (largest minus smallest). `num_ties` counts sentences that go on differently from
    a position where the two best logits are closer than `tie_gap`.
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
        """Where the two best logits are closer, either may win: errors of this size were seen."""
        return max(TIE_GAP, 2.0 * self.max_error)

    def lines(self) -> list[str]:
        """A short text for the terminal."""
        return [
            f"compared {self.num_golden} golden and {self.num_random} random sentences, {self.num_positions} positions",
            f"torch against ONNX Runtime: largest error {self.max_error:.2e}, "
            f"{self.max_relative_error:.2e} of the logits' range (allowed {self.max_relative_error_allowed:.0e})",
            f"cached in mixed batches against full re-decoding: same greedy tokens, {self.num_ties} ties excepted",
        ]

    def document(self) -> dict[str, float | int]:
        """The numbers, for the manifest."""
        return {name: value for name, value in asdict(self).items() if name != "golden"}


_Batch = list[tuple[Sentence, FullDecoding]]


def verify(
    checkpoint: ImportedCheckpoint,
    graphs: GraphPair,
    tokenizer: Tokenizer,
    precision: str = "float32",
) -> VerificationReport:
    """Compare the graphs with the model on golden and random sentences in batches of mixed lengths.

    Compared are all log-probabilities along the model's own greedy output, and the greedy tokens of cached decoding
    with those of full re-decoding. The report holds the golden pairs for the manifest, in the texts' order.

    Raises:
        VerificationError: an error is too large, or a token differs although it is no tie.
    """
    golden = list(golden_sentences(checkpoint, tokenizer))
    sentences = golden + list(random_sentences(checkpoint))
    report = VerificationReport(num_golden=len(golden), num_random=len(sentences) - len(golden))
    if precision == "float16":
        report.max_relative_error_allowed = MAX_RELATIVE_ERROR_FLOAT16
    complete: dict[Sentence, tuple[int, ...]] = {}
    num_batches = -(-len(sentences) // BATCH_SIZE)
    for number in range(num_batches):
        # A stride through the list puts golden and random sentences, short and long ones, into one batch.
        with _one_thread():
            batch = [(sentence, _decode(checkpoint, sentence)) for sentence in sentences[number::num_batches]]
        _compare_log_probs(checkpoint, graphs, batch, report)
        _compare_tokens(checkpoint, graphs, batch, report)
        for sentence, decoding in batch:
            report.num_positions += len(decoding.token_ids)
            if decoding.token_ids[-1] == checkpoint.tokenizer.eos_id:
                complete[sentence] = decoding.token_ids
    if not report.max_relative_error < report.max_relative_error_allowed:
        raise VerificationError(
            f"the graphs' largest error is {report.max_error:.3g}, {report.max_relative_error:.3g} of the logits' "
            f"range; allowed is {report.max_relative_error_allowed:.0e}."
        )
    report.golden = [
        _golden_pair(sentence, complete[sentence], tokenizer) for sentence in golden if sentence in complete
    ]
    if not report.golden:
        raise VerificationError(
            f"of {len(golden)} golden sentences the model ended none within {MAX_GOLDEN_OUTPUT_TOKENS} tokens; "
            "is it trained?"
        )
    return report


def verify_engine(directory: Path, manifest: Manifest) -> None:
    """Translate the golden sentences with the engine that will serve the bundle, all at once.

    Raises:
        VerificationError: a token differs; names the first one.
    """
    for golden, given in zip(manifest.golden, decode_golden(directory, manifest), strict=True):
        expected = golden.output_ids[:-1]
        if given != expected:
            position = first_difference(expected, given)
            raise VerificationError(
                f"{golden.text!r}, position {position}: the engine gives {given[position : position + 1]}, "
                f"the model {expected[position : position + 1]}; the tokens before it are the same."
            )


def _golden_pair(sentence: Sentence, output: tuple[int, ...], tokenizer: Tokenizer) -> GoldenPair:
    return GoldenPair(
        source_language_code=sentence.languages.source_language_code,
        target_language_code=sentence.languages.target_language_code,
        text=sentence.text or "",
        source_ids=sentence.source_ids,
        output_ids=output,
        translation=tokenizer.decode(output[:-1]),
    )


def _decode(checkpoint: ImportedCheckpoint, sentence: Sentence) -> FullDecoding:
    prefix, limit = sentence.languages.target_prefix_ids, sentence.max_output_tokens
    return decode_fully(checkpoint.model, sentence.source_ids, prefix, checkpoint.suppressed_ids, limit)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Single sentences gain little from more threads, and lose tenfold while anything else wants the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _compare_log_probs(
    checkpoint: ImportedCheckpoint, graphs: GraphPair, batch: _Batch, report: VerificationReport
) -> None:
    """Feed the model's own output and compare the log-probabilities of the whole vocabulary at every position."""
    config = checkpoint.model.config
    prefixes = [(config.decoder_start_id, *sentence.languages.target_prefix_ids) for sentence, _ in batch]
    fed = [(*prefix, *decoding.token_ids[:-1]) for prefix, (_, decoding) in zip(prefixes, batch, strict=True)]
    num_steps = max(map(len, fed))
    state = graphs.start([sentence.source_ids for sentence, _ in batch], config.pad_id, num_steps)
    for step in range(num_steps):
        tokens = np.array([ids[step] if step < len(ids) else config.pad_id for ids in fed])
        ids, log_probs = state.candidates(tokens, config.target_vocabulary_size)
        by_token = np.empty_like(log_probs)
        np.put_along_axis(by_token, ids, log_probs, axis=1)  # (B, V)
        for row, (sentence, decoding) in enumerate(batch):
            position = step - len(prefixes[row]) + 1
            if 0 <= position < len(decoding.token_ids):
                where = f"{sentence}, position {position}"
                error = _largest_error(by_token[row], decoding.logits[position], checkpoint.suppressed_ids, where)
                value_range = float(decoding.logits[position].max() - decoding.logits[position].min())
                report.max_error = max(report.max_error, error)
                report.max_relative_error = max(report.max_relative_error, error / value_range)


def _largest_error(
    log_probs: npt.NDArray[np.float32], logits: torch.Tensor, suppressed_ids: Sequence[int], where: str
) -> float:
    """Largest difference of log-probabilities over the allowed tokens; both (V,)."""
    suppressed = np.zeros(len(log_probs), dtype=bool)
    suppressed[list(suppressed_ids)] = True
    if not np.array_equal(np.isneginf(log_probs), suppressed):
        raise VerificationError(f"{where}: tokens of probability zero are not just the suppressed ones.")
    expected = torch.log_softmax(logits.double(), dim=-1).numpy()
    error = float(np.abs(log_probs - expected)[~suppressed].max())
    if not np.isfinite(error):
        raise VerificationError(f"{where}: a log-probability is not a number.")
    return error


def _compare_tokens(
    checkpoint: ImportedCheckpoint, graphs: GraphPair, batch: _Batch, report: VerificationReport
) -> None:
    """Decode the batch with the caches and compare the tokens."""
    rows = [(each.source_ids, each.languages.target_prefix_ids, each.max_output_tokens) for each, _ in batch]
    outputs = decode_cached(graphs, checkpoint.tokenizer, rows)
    for (sentence, decoding), output in zip(batch, outputs, strict=True):
        if output == decoding.token_ids:
            continue
        position = first_difference(decoding.token_ids, output)
        if top_two_gap(decoding.logits[position].numpy(), checkpoint.suppressed_ids) >= report.tie_gap:
            raise VerificationError(
                f"{sentence}, position {position}: the graphs chose token {output[position]} with the cache, the model "
                f"{decoding.token_ids[position]} without; the tokens before it are the same."
            )
        report.num_ties += 1


def first_difference(expected: Sequence[int], given: Sequence[int]) -> int:
    """Index of the first position where two different outputs differ."""
    return next(i for i, (a, b) in enumerate(itertools.zip_longest(expected, given)) if a != b)


def top_two_gap(logits: npt.NDArray[np.float32], suppressed_ids: Sequence[int]) -> float:
    """How far the best allowed token of (V,) is ahead of the second best."""
    second, best = np.partition(np.delete(logits, list(suppressed_ids)), -2)[-2:]
    return float(best - second)
