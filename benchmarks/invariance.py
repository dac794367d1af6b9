"""Checks that a translation is independent of its batch: every sentence alone, in full batches, and at random arrival.

Compares token ids, for greedy and beam search. A difference is explained if it is a tie: at the position where the
outputs diverge, the two best log-probabilities of the sentence alone are closer than 1e-4. int8 must show no difference
at all.
"""

import random
import time
from collections.abc import Sequence as Sequence_
from pathlib import Path
from typing import Any

import click
import numpy as np
from tqdm import tqdm

from benchmarks.report import write_records
from benchmarks.workload import held_out_texts
from export.engine_decode import open_engine
from export.graphs.execution import GraphPair
from export.verify import TIE_GAP, first_difference
from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.engine.generate import OfflineEngine, sequences_of
from service.text.tokenizers import load_tokenizer

BATCH_SIZE = 32
Ids = tuple[int, ...]


@click.command()
@click.argument("sentences", type=click.Path(exists=True, path_type=Path))
@click.option("--bundle", type=click.Path(exists=True, path_type=Path), default=Path("models/en-de/1"))
@click.option("--count", default=1000, show_default=True, help="Sentences, spread evenly over the file.")
@click.option("--beam-size", default=4, show_default=True)
def main(sentences: Path, bundle: Path, count: int, beam_size: int) -> None:
    """Print how many outputs of SENTENCES' first column changed with the company they were in."""
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    texts = list(dict.fromkeys(held_out_texts(sentences)))
    encoded = [manifest.source_ids(tokenizer.encode(text), manifest.first_pair) for text in texts]
    usable = [ids for ids in encoded if len(ids) <= manifest.limits.max_source_tokens]
    sources = usable[:: max(1, len(usable) // count)][:count]
    records: list[dict[str, Any]] = []
    for size in (1, beam_size):
        options = DecodingOptions(
            beam_size=size,
            length_penalty=manifest.generation.length_penalty,
            num_hypotheses=1,
            max_output_tokens=manifest.limits.max_output_tokens,
        )
        target_prefix = manifest.first_pair.target_prefix_ids
        with open_engine(bundle, manifest, max_slots=BATCH_SIZE * size) as engine:
            alone = [_decode(engine, [each], target_prefix, options)[0] for each in tqdm(sources, desc="alone")]
            companies = {
                "batches": _in_batches(engine, sources, target_prefix, options),
                "random arrival": _at_random(engine, sources, target_prefix, options),
            }
        for company, given in companies.items():
            changed = [row for row in range(len(sources)) if given[row] != alone[row]]
            gaps = [_gap(bundle, manifest, sources[row], alone[row], given[row]) for row in changed]
            for row, gap in zip(changed, gaps, strict=True):
                kind = "tie" if gap < TIE_GAP else "DIFFERENT"
                click.echo(f"beam {size}, {company}, {kind} (top-2 gap {gap:.2e}): {tokenizer.decode(sources[row])!r}")
            ties = sum(gap < TIE_GAP for gap in gaps)
            same = f"{len(sources) - len(changed)} of {len(sources)} the same as alone"
            different = len(changed) - ties
            click.echo(f"{manifest.precision}, beam {size}, {company}: {same}, {ties} ties, {different} different")
            records.append(
                {
                    "model": manifest.name,
                    "engine": "dragoman",
                    "precision": manifest.precision,
                    "decode": "greedy" if size == 1 else f"beam{size}",
                    "company": company,
                    "sentences": len(sources),
                    "changed": len(changed),
                    "ties": ties,
                }
            )
    click.echo(f"Wrote {write_records(f'invariance-{manifest.precision}', records)}.")


def _decode(engine: OfflineEngine, sources: Sequence_[Ids], prefix: Ids, options: DecodingOptions) -> list[Ids]:
    return [best.token_ids for best, *_ in engine.decode([(source, prefix) for source in sources], options)]


def _in_batches(engine: OfflineEngine, sources: Sequence_[Ids], prefix: Ids, options: DecodingOptions) -> list[Ids]:
    """Return the outputs of batches of 32, each run to its end."""
    outputs: list[Ids] = []
    for start in tqdm(range(0, len(sources), BATCH_SIZE), desc="batches"):
        outputs += _decode(engine, sources[start : start + BATCH_SIZE], prefix, options)
    return outputs


def _at_random(engine: OfflineEngine, sources: Sequence_[Ids], prefix: Ids, options: DecodingOptions) -> list[Ids]:
    """Return the outputs of submissions in random order, a few at a time, at random moments while others run."""
    rng = random.Random(1)
    order = rng.sample(range(len(sources)), len(sources))
    waiting = []
    while order:
        rows = [order.pop() for _ in range(min(len(order), rng.randint(1, 6)))]
        waiting.append((rows, engine.submit(sequences_of([(sources[row], prefix) for row in rows], options))))
        time.sleep(rng.expovariate(1 / 0.01))
    outputs: dict[int, Ids] = {}
    for rows, call in waiting:
        outputs.update(zip(rows, (best.token_ids for best, *_ in call.result()), strict=True))
    return [outputs[row] for row in range(len(sources))]


def _gap(bundle: Path, manifest: Manifest, source: Ids, alone: Ids, given: Ids) -> float:
    """Return the gap between the two best tokens of the sentence alone, at the position where the outputs diverge."""
    pair = GraphPair(bundle / manifest.graphs.encoder, bundle / manifest.graphs.decoder_step, manifest.model)
    eos_id = manifest.tokenizer.eos_id
    position = first_difference((*alone, eos_id), (*given, eos_id))
    fed = (manifest.tokenizer.decoder_start_id, *manifest.first_pair.target_prefix_ids, *alone[:position])
    state = pair.start([source], manifest.tokenizer.pad_id, len(fed))
    for token in fed[:-1]:
        state.next_ids(np.array([token]))
    _, log_probs = state.candidates(np.array([fed[-1]]), 2)
    return float(log_probs[0, 0] - log_probs[0, 1])


if __name__ == "__main__":
    main()
