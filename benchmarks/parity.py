"""Checks that the exported graphs and the engine translate as transformers does with the same weights.

Compares greedy and beam search over the first column of a TSV file with `generate`. A difference is a tie if the
reference can't distinguish: where the outputs diverge, its two best logits are closer than 1e-4 (greedy), or it scores
our hypothesis within 1e-4 of its own (beam).
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import torch
from tqdm import tqdm

from benchmarks.report import write_records
from benchmarks.workload import held_out_texts
from export.architecture.transformer import Transformer
from export.engine_decode import open_engine
from export.importers.native.importer import import_native
from export.verify import TIE_GAP, first_difference, top_two_gap
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.domain.translation import FinishReason
from service.engine.sequence import DecodedHypothesis
from service.text.tokenizers import load_tokenizer
from tests.references.m2m100 import ReferenceOutput, generate, logits_along, to_m2m100

BATCH_SIZE = 16


@click.command()
@click.argument("sentences", type=click.Path(exists=True, path_type=Path))
@click.option("--checkpoint", type=click.Path(exists=True, path_type=Path), default=Path("checkpoints/en-de"))
@click.option("--bundle", type=click.Path(exists=True, path_type=Path), default=Path("build/float32/en-de/1"))
@click.option("--count", default=500, show_default=True, help="Sentences, spread evenly over the file.")
@click.option("--beam-size", default=4, show_default=True)
def main(sentences: Path, checkpoint: Path, bundle: Path, count: int, beam_size: int) -> None:
    """Print how many of SENTENCES come out the same, and every tie and difference."""
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    texts = held_out_texts(sentences)
    sources = []
    for text in texts[:: max(1, len(texts) // count)][:count]:
        ids = manifest.source_ids(tokenizer.encode(text), manifest.first_pair)
        if len(ids) <= manifest.limits.max_source_tokens:
            sources.append(ids)
    reference = to_m2m100(Transformer.of(import_native(checkpoint).model))
    records: list[dict[str, Any]] = []
    with open_engine(bundle, manifest) as engine:
        for size in (1, beam_size):
            options = DecodingOptions(
                beam_size=size,
                length_penalty=manifest.generation.length_penalty,
                num_hypotheses=1,
                max_output_tokens=manifest.limits.max_output_tokens,
                return_scores=True,
            )
            ours = engine.decode([(source, ()) for source in sources], options)
            theirs = _reference_outputs(reference, sources, options, manifest.suppressed_ids)
            same, ties = 0, 0
            for source, given, expected in zip(sources, ours, theirs, strict=True):
                if given[0].token_ids == expected.token_ids[0]:
                    same += 1
                    continue
                gap = _gap(reference, source, given[0], expected, options, manifest)
                ties += gap < TIE_GAP
                kind = "tie" if gap < TIE_GAP else "DIFFERENT"
                click.echo(f"beam {size}, {kind} (gap {gap:.2e}): {tokenizer.decode(source)!r}")
                click.echo(f"    dragoman      {tokenizer.decode(given[0].token_ids)!r}")
                click.echo(f"    transformers  {tokenizer.decode(expected.token_ids[0])!r}")
            click.echo(
                f"beam {size}: {same} of {len(sources)} identical, {ties} ties, {len(sources) - same - ties} different"
            )
            records.append({"beam_size": size, "sentences": len(sources), "identical": same, "ties": ties})
    write_records("parity", records)


def _reference_outputs(
    reference: Any, sources: Sequence[Sequence[int]], options: DecodingOptions, suppressed_ids: Sequence[int]
) -> list[ReferenceOutput]:
    """Translate in batches of similar lengths, so that padding costs little; return outputs in the sources' order."""
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    outputs: dict[int, ReferenceOutput] = {}
    for rows in tqdm(list(_chunks(order)), desc=f"transformers, beam {options.beam_size}", unit="batch"):
        given = generate(reference, [sources[i] for i in rows], options, suppressed_ids)
        outputs.update(zip(rows, given, strict=True))
    return [outputs[i] for i in range(len(sources))]


def _chunks(order: list[int]) -> Iterator[list[int]]:
    rest = iter(order)
    while chunk := list(itertools.islice(rest, BATCH_SIZE)):
        yield chunk


def _gap(
    reference: Any,
    source: Sequence[int],
    given: DecodedHypothesis,
    expected: ReferenceOutput,
    options: DecodingOptions,
    manifest: Manifest,
) -> float:
    """Return by how much the reference scores its own output better than ours."""
    if options.beam_size > 1:
        eos = (manifest.tokenizer.eos_id,) if given.finish_reason is FinishReason.STOP else ()
        ids = (*given.token_ids, *eos)
        with torch.no_grad():
            log_probs = logits_along(reference, source, given.token_ids).double().log_softmax(-1)
        total = sum(float(log_probs[position, token]) for position, token in enumerate(ids))
        score: float = total / len(ids) ** options.length_penalty
        return abs(expected.scores[0] - score)
    position = first_difference(expected.token_ids[0], given.token_ids)
    with torch.no_grad():
        logits = logits_along(reference, source, expected.token_ids[0][:position])
    return top_two_gap(logits[position].numpy(), manifest.suppressed_ids)


if __name__ == "__main__":
    main()
