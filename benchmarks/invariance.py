"""Checks that a translation is independent of its batch: every sentence alone, in full batches, and at random arrival.

Compares token ids, for greedy search, beam search and sampling, for which each sentence has a seed of its own. A
difference is explained if it is a tie: at the position where the outputs diverge, the two best log-probabilities of the
sentence alone are closer than 1e-4; of samples, none is. int8 must show no difference at all. That the comparison finds
differences is shown by samples with other seeds.
"""

import dataclasses
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
from service.domain.call import Call
from service.domain.options import DecodingOptions
from service.engine.generate import OfflineEngine
from service.engine.sequence import Sequence
from service.text.tokenizers import load_tokenizer

BATCH_SIZE = 32
DECODES = ("greedy", "beam", "sampling")
TEMPERATURE, TOP_K, TOP_P = 1.0, 40, 0.95
Ids = tuple[int, ...]
Row = tuple[Ids, Ids, DecodingOptions]  # source, target prefix, how to decode


@click.command()
@click.argument("sentences", type=click.Path(exists=True, path_type=Path))
@click.option("--bundle", type=click.Path(exists=True, path_type=Path), default=Path("models/en-de/1"))
@click.option("--count", default=1000, show_default=True, help="Sentences, spread evenly over the file.")
@click.option("--decode", "decodes", multiple=True, type=click.Choice(DECODES), help="Only these.")
@click.option("--beam-size", default=4, show_default=True)
def main(sentences: Path, bundle: Path, count: int, decodes: tuple[str, ...], beam_size: int) -> None:
    """Print how many outputs of SENTENCES' first column changed with the company they were in."""
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    texts = list(dict.fromkeys(held_out_texts(sentences)))
    encoded = [manifest.source_ids(tokenizer.encode(text), manifest.first_pair) for text in texts]
    usable = [ids for ids in encoded if len(ids) <= manifest.limits.max_source_tokens]
    sources = usable[:: max(1, len(usable) // count)][:count]
    records: list[dict[str, Any]] = []
    for kind in decodes or DECODES:
        size, is_sampled = beam_size if kind == "beam" else 1, kind == "sampling"
        decode = f"beam{size}" if kind == "beam" else kind
        rows = _rows(manifest, sources, size, first_seed=0 if is_sampled else None)
        others: dict[str, int] = {}
        with open_engine(bundle, manifest, max_slots=BATCH_SIZE * size) as engine:
            alone = [_decode(engine, [each])[0] for each in tqdm(rows, desc="alone")]
            companies = {"batches": _in_batches(engine, rows), "random arrival": _at_random(engine, rows)}
            if is_sampled:
                other = _in_batches(engine, _rows(manifest, sources, size, first_seed=len(sources)))
                others = {"same_with_other_seeds": sum(ids == own for ids, own in zip(other, alone, strict=True))}
                click.echo(f"control: with other seeds, {others['same_with_other_seeds']} of {len(sources)} the same")
        for company, given in companies.items():
            changed = [row for row in range(len(sources)) if given[row] != alone[row]]
            gaps = [
                np.inf if is_sampled else _gap(bundle, manifest, sources[row], alone[row], given[row])
                for row in changed
            ]
            for row, gap in zip(changed, gaps, strict=True):
                found = "tie" if gap < TIE_GAP else "DIFFERENT"
                click.echo(f"{decode}, {company}, {found} (top-2 gap {gap:.2e}): {tokenizer.decode(sources[row])!r}")
            ties = sum(gap < TIE_GAP for gap in gaps)
            same = f"{len(sources) - len(changed)} of {len(sources)} the same as alone"
            different = len(changed) - ties
            click.echo(f"{manifest.precision}, {decode}, {company}: {same}, {ties} ties, {different} different")
            records.append(
                {
                    "model": manifest.name,
                    "engine": "dragoman",
                    "precision": manifest.precision,
                    "decode": decode,
                    "company": company,
                    "sentences": len(sources),
                    "changed": len(changed),
                    "ties": ties,
                    **others,
                }
            )
    click.echo(f"Wrote {write_records(f'invariance-{manifest.precision}', records)}.")


def _rows(manifest: Manifest, sources: Sequence_[Ids], beam_size: int, first_seed: int | None) -> list[Row]:
    """Return what to decode: samples, whose seeds count from the first, or else by search."""
    options = DecodingOptions(
        beam_size=beam_size,
        length_penalty=manifest.generation.length_penalty,
        num_hypotheses=1,
        max_output_tokens=manifest.limits.max_output_tokens,
    )
    prefix = manifest.first_pair.target_prefix_ids
    if first_seed is None:
        return [(source, prefix, options) for source in sources]
    sampled = dataclasses.replace(options, temperature=TEMPERATURE, top_k=TOP_K, top_p=TOP_P)
    return [
        (source, prefix, dataclasses.replace(sampled, seed=seed)) for seed, source in enumerate(sources, first_seed)
    ]


def _sequences(rows: Sequence_[Row]) -> list[Sequence]:
    """Create the sequences of one call, arriving now."""
    now, call = time.monotonic(), Call()
    return [Sequence(source, options, now, prefix, call=call) for source, prefix, options in rows]


def _decode(engine: OfflineEngine, rows: Sequence_[Row]) -> list[Ids]:
    return [best.token_ids for best, *_ in engine.generate(_sequences(rows))]


def _in_batches(engine: OfflineEngine, rows: Sequence_[Row]) -> list[Ids]:
    """Return the outputs of batches of 32, each run to its end."""
    outputs: list[Ids] = []
    for start in tqdm(range(0, len(rows), BATCH_SIZE), desc="batches"):
        outputs += _decode(engine, rows[start : start + BATCH_SIZE])
    return outputs


def _at_random(engine: OfflineEngine, rows: Sequence_[Row]) -> list[Ids]:
    """Return the outputs of submissions in random order, a few at a time, at random moments while others run."""
    rng = random.Random(1)
    order = rng.sample(range(len(rows)), len(rows))
    waiting = []
    while order:
        numbers = [order.pop() for _ in range(min(len(order), rng.randint(1, 6)))]
        waiting.append((numbers, engine.submit(_sequences([rows[number] for number in numbers]))))
        time.sleep(rng.expovariate(1 / 0.01))
    outputs: dict[int, Ids] = {}
    for numbers, call in waiting:
        outputs.update(zip(numbers, (best.token_ids for best, *_ in call.result()), strict=True))
    return [outputs[number] for number in range(len(rows))]


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
