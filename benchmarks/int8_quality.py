"""What int8 changes, in our engine and in CTranslate2: `python -m benchmarks.int8_quality [HELDOUT]`.

HELDOUT is `source<TAB>target<TAB>part`, UTF-8, or without parts; by default it is 1,000 pairs, 500 that en-de was not
trained on, and 500 that de-en was not. Each engine translates all of it in float32 and in int8, greedily by default.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from benchmarks.contenders import CT2_COMPUTE_TYPE
from benchmarks.models import EN_DE, SHIPPED_BUNDLES, prepare_ct2
from benchmarks.peers.peer import PeerSettings
from benchmarks.peers.worker import open_peer
from benchmarks.report import write_records
from benchmarks.workload import SENTENCES, Task
from service.bundle.manifest import Manifest
from service.engine.cpus import available_cpus
from service.text.tokenizers import load_tokenizer

OTHERS = Path("checkpoints/de-en/sentences.tsv")  # German, English, part
BATCH = 64


@click.command()
@click.argument("heldout", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--beam-size", default=1, show_default=True)
def main(heldout: Path | None, beam_size: int) -> None:
    """Print BLEU and chrF, and the share of translations as in float32, the engine's own and ours; per part and over
    all. Write build/bench/int8_quality.json."""
    bundle, threads = SHIPPED_BUNDLES["int8"], available_cpus()
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    rows = [
        (manifest.source_ids(tokenizer.encode(source), manifest.first_pair), target, part)
        for source, target, part in (_shipped_rows() if heldout is None else _rows(heldout))
    ]
    rows = [row for row in rows if len(row[0]) <= manifest.limits.max_source_tokens]
    folder, layout = str(prepare_ct2(EN_DE, click.echo)), {"inter_threads": threads, "intra_threads": 1}
    options = {"intra_op_threads": threads, "allow_spinning": False}
    engines = [PeerSettings("dragoman", precision, str(at), options) for precision, at in SHIPPED_BUNDLES.items()]
    engines += [PeerSettings("ctranslate2", each, folder, layout) for each in ("float32", CT2_COMPUTE_TYPE)]
    exact: dict[str, list[str]] = {}  # what each engine makes of the sentences in float32
    records: list[dict[str, Any]] = []
    for settings in engines:
        texts = list(map(tokenizer.decode, _translated(settings, [ids for ids, *_ in rows], beam_size)))
        exact.setdefault(settings.engine, texts)
        for part in dict.fromkeys([*(part for *_, part in rows), "all"]):
            chosen = [number for number, row in enumerate(rows) if part in (row[2], "all")]
            given, references = [texts[number] for number in chosen], [rows[number][1] for number in chosen]
            record = {"engine": settings.engine, "precision": settings.precision, "part": part, "lines": len(chosen)}
            record["bleu"] = round(BLEU().corpus_score(given, [references]).score, 2)  # more places would be noise
            record["chrf"] = round(CHRF().corpus_score(given, [references]).score, 2)
            for name, other in (("as_float32", settings.engine), ("as_our_float32", "dragoman")):
                same = sum(texts[number] == exact[other][number] for number in chosen)
                record[name] = round(same / len(chosen), 4)
            records.append(record)
            click.echo(", ".join(f"{name} {value}" for name, value in record.items()))
    click.echo(f"Wrote {write_records('int8_quality', records)}.")


def _rows(path: Path) -> list[list[str]]:
    return [[*line.split("\t"), "all"][:3] for line in path.read_text(encoding="utf-8").splitlines()]


def _shipped_rows() -> list[list[str]]:
    return [*_rows(SENTENCES), *([target, source, "de-en"] for source, target, _ in _rows(OTHERS))]


def _translated(settings: PeerSettings, sources: Sequence[tuple[int, ...]], beam_size: int) -> list[list[int]]:
    """Return the engine's outputs in the order of the sources, from batches of neighbours in length."""
    order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
    task = Task((), beam_size, EN_DE.max_output_tokens)
    outputs: dict[int, list[int]] = {}
    peer = open_peer(settings)
    for start in range(0, len(order), BATCH):
        numbers = order[start : start + BATCH]
        outputs.update(zip(numbers, peer.translate([sources[number] for number in numbers], task), strict=True))
    peer.close()
    return [outputs[number] for number in range(len(sources))]


if __name__ == "__main__":
    main()
