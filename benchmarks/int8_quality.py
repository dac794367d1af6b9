"""The quality lost by int8: `python -m benchmarks.int8_quality HELDOUT`.

HELDOUT is `source<TAB>target<TAB>part`, UTF-8, or without parts. Both bundles translate all of it, greedily by default.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from benchmarks.models import SHIPPED_BUNDLES
from benchmarks.report import write_records
from export.engine_decode import greedy_options, open_engine
from service.bundle.manifest import Manifest
from service.text.tokenizers import load_tokenizer


@click.command()
@click.argument("sentences", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--beam-size", default=1, show_default=True)
def main(sentences: Path, beam_size: int) -> None:
    """Print BLEU and chrF of float32 and int8, per part and over all, and write build/bench/int8_quality.json."""
    rows = [[*line.split("\t"), "all"] for line in sentences.read_text(encoding="utf-8").splitlines()]
    outputs = {precision: translated(SHIPPED_BUNDLES[precision], rows, beam_size) for precision in ("float32", "int8")}
    records: list[dict[str, Any]] = []
    for part in dict.fromkeys([*(row[2] for row in rows), "all"]):
        chosen = [index for index, row in enumerate(rows) if part in (row[2], "all")]
        references = [rows[index][1] for index in chosen]
        texts = {precision: [given[index] for index in chosen] for precision, given in outputs.items()}
        (bleu_float32, chrf_float32), (bleu, chrf) = (scores(given, references) for given in texts.values())
        same = sum(one == other for one, other in zip(*texts.values(), strict=True)) / len(chosen)
        record = {
            "part": part,
            "lines": len(chosen),
            "bleu": bleu,
            "bleu_float32": bleu_float32,
            "chrf": chrf,
            "chrf_float32": chrf_float32,
            "identical": same,
        }
        records.append(record)
        click.echo(
            ", ".join(
                f"{name} {value:.3g}" if name == "identical" else f"{name} {value}" for name, value in record.items()
            )
        )
    click.echo(f"Wrote {write_records('int8_quality', records)}.")


def scores(outputs: Sequence[str], references: Sequence[str]) -> tuple[float, float]:
    """Return corpus BLEU and chrF to two places; more would be noise."""
    bleu = BLEU().corpus_score(list(outputs), [list(references)]).score
    chrf = CHRF().corpus_score(list(outputs), [list(references)]).score
    return round(bleu, 2), round(chrf, 2)


def translated(bundle: Path, rows: Sequence[Sequence[str]], beam_size: int) -> list[str]:
    """Return translations of the rows' first column; a sentence too long for the model gets an empty one."""
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    pair = manifest.first_pair
    sources = [manifest.source_ids(tokenizer.encode(row[0]), pair) for row in rows]
    fitting = [index for index, ids in enumerate(sources) if len(ids) <= manifest.limits.max_source_tokens]
    texts = [""] * len(rows)
    with open_engine(bundle, manifest, max_slots=64) as engine:
        decoded = engine.decode(
            [(sources[index], pair.target_prefix_ids) for index in fitting],
            dataclasses.replace(greedy_options(manifest), beam_size=beam_size),
        )
    for index, (best, *_) in zip(fitting, decoded, strict=True):
        texts[index] = tokenizer.decode(best.token_ids)
    return texts


if __name__ == "__main__":
    main()
