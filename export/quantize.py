"""Converts a float32 bundle to int8: calibrate, rewrite, fuse, evaluate, write. Does not need torch."""

import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx_ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from export.alignment import Translated, identical_pieces, share_found
from export.bundle_writer import bundle_bytes, check_destination, checksums, staged_bundle
from export.engine_decode import decode_golden, greedy_options, open_engine
from export.fusing.bundle import fused_line, write_fused
from export.fusing.plain_graph import FusingError
from export.graphs.checks import check_alignment, check_decoder_step, check_encoder
from export.graphs.execution import AlignmentRun, GraphPair
from export.graphs.fusion import branch_scores, keep_token_axis
from export.quantization.calibration import BATCH_SIZE, Row, observe
from export.quantization.quality import Quality, scores
from export.quantization.ranges import METHODS, Histogram
from export.quantization.rewriting import quantize_graph
from export.quantization.sentences import ParallelLine, read_lines, split
from export.stages import Stages
from export.tools import cpu_model, tool_versions
from service.bundle.checksums import check_intact
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import GoldenPair, Graphs
from service.text.tokenizers import Tokenizer, load_tokenizer

_Histograms = Mapping[str, Mapping[str, Histogram]]


def quantize(
    source: Path,
    destination: Path,
    calibration: Path,
    name: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Manifest:
    """Write the int8 form of the float32 bundle in `source` to `destination`; report every stage through `say`.

    `name` is the new model's name; `None`: the name in `source`. Models of one repository need distinct names.

    Half of the calibration lines give the activations' ranges, by each of `METHODS`; the method whose graphs agree most
    often with float32's choice of the next token is taken. The other half measures the loss of quality.

    Raises:
        BundleError: `source` is not an intact float32 bundle, or `destination` holds something else.
        CalibrationError: the calibration file is missing, or has too few usable lines.
    """
    stages = Stages(say)
    check_destination(destination)
    manifest = _float32_manifest(source)
    tokenizer = load_tokenizer(manifest.tokenizer, source)
    lines = read_lines(calibration, manifest, tokenizer)
    calibrating, judging = split(lines)
    expected = dict(zip(lines, _decode(source, manifest, lines), strict=True))
    stages.done("decode", f"{len(lines)} sentences of {calibration.name} in float32")
    start_id, prefix = manifest.tokenizer.decoder_start_id, manifest.first_pair.target_prefix_ids
    # An output cut off at the limit may have no position left for its last token.
    limit = manifest.limits.max_output_tokens
    rows: list[Row] = [(line.source_ids, (start_id, *prefix, *expected[line])[:limit]) for line in calibrating]
    histograms = observe(source, manifest, rows)
    stages.done("observe", f"{sum(map(len, histograms.values()))} activations on {len(rows)} sentences")
    method = _best_method(source, manifest, histograms, rows)
    stages.done("choose", f"activation ranges by {method}")
    with staged_bundle(destination) as directory:
        for file_name in manifest.tokenizer.files:
            shutil.copyfile(source / file_name, directory / file_name)
        write_graphs(source, directory, manifest, histograms, method)
        check_encoder(directory / manifest.graphs.encoder, manifest.model, "int8")
        check_decoder_step(directory / manifest.graphs.decoder_step, manifest.model, "int8")
        if manifest.graphs.alignment:
            layer = manifest.graphs.alignment_layer
            check_alignment(directory / manifest.graphs.alignment, manifest.model, layer, "int8")
        served = dataclasses.replace(manifest, precision="int8", graphs=_fuse(directory, manifest, stages))
        given = _decode(directory, served, judging)
        quality = _quality(judging, given, [expected[line] for line in judging], tokenizer, method)
        quality = dataclasses.replace(
            quality,
            alignment=_alignment_found(directory, manifest, judging, given, tokenizer),
            alignment_float32=_alignment_found(source, manifest, judging, given, tokenizer),
        )
        stages.done("judge", quality.line())
        quantized = dataclasses.replace(
            served,
            name=manifest.name if name is None else name,
            golden=_golden(directory, served, tokenizer),
            checksums=checksums(directory),
            tools=tool_versions(),
            quality=quality.document(),
        )
        quantized.save(directory)
    stages.done("write", f"{destination} ({bundle_bytes(destination) / 1e6:.1f} MB)")
    return quantized


def _float32_manifest(source: Path) -> Manifest:
    manifest = Manifest.load(source)
    if manifest.precision != "float32":
        raise BundleError(f"{source} is {manifest.precision}; only a float32 bundle can be quantized.")
    check_intact(source, manifest)
    return manifest


def _decode(directory: Path, manifest: Manifest, lines: Sequence[ParallelLine]) -> list[tuple[int, ...]]:
    """Return greedy output ids, without the end-of-sentence token."""
    prefix = manifest.first_pair.target_prefix_ids
    rows = [(line.source_ids, prefix) for line in lines]
    with open_engine(directory, manifest) as engine:
        return [best.token_ids for best, *_ in engine.decode(rows, greedy_options(manifest))]


def _best_method(source: Path, manifest: Manifest, histograms: _Histograms, rows: Sequence[Row]) -> str:
    """Return the method whose graphs choose float32's next token most often; among equals, the one listed first."""
    agreed = {}
    for method in METHODS:
        with tempfile.TemporaryDirectory() as folder:
            write_graphs(source, Path(folder), manifest, histograms, method)
            graphs = manifest.graphs
            pair = GraphPair(Path(folder) / graphs.encoder, Path(folder) / graphs.decoder_step, manifest.model)
            agreed[method] = _agreement(pair, manifest, rows)
    return max(METHODS, key=lambda method: agreed[method])


def _agreement(pair: GraphPair, manifest: Manifest, rows: Sequence[Row]) -> int:
    """Count the output tokens of float32 that are predicted given those before them."""
    pad_id, num_agreed = manifest.tokenizer.pad_id, 0
    num_forced = len(manifest.first_pair.target_prefix_ids)
    for start in range(0, len(rows), BATCH_SIZE):
        sources, fed = zip(*rows[start : start + BATCH_SIZE], strict=True)
        state = pair.start(sources, pad_id, max(map(len, fed)))
        for step in range(max(map(len, fed)) - 1):
            tokens = np.array([ids[step] if step < len(ids) else pad_id for ids in fed])
            chosen = state.next_ids(tokens).tolist()
            if step >= num_forced:
                num_agreed += sum(
                    step + 1 < len(ids) and ids[step + 1] == token for ids, token in zip(fed, chosen, strict=True)
                )
    return num_agreed


def write_graphs(source: Path, folder: Path, manifest: Manifest, histograms: _Histograms, method: str) -> None:
    """Write the plain graphs in int8 to `folder`, with activation ranges by `method`, one of `METHODS`."""
    for name in manifest.graphs.plain:
        model = onnx_ir.load(source / name)
        quantize_graph(model, {value: histogram.range(method) for value, histogram in histograms[name].items()})
        if name == manifest.graphs.decoder_step:
            keep_token_axis(model.graph)
            branch_scores(model.graph)
        RemoveUnusedNodesPass()(model)
        onnx_ir.save(model, folder / name)


def _fuse(directory: Path, manifest: Manifest, stages: Stages) -> Graphs:
    """Write the fused graphs; a bundle of which they can't be made does without."""
    try:
        graphs = write_fused(directory, manifest)
    except FusingError as error:
        stages.done("fuse", f"plain graphs only: {error}")
        return manifest.graphs
    stages.done("fuse", fused_line(directory, graphs))
    return graphs


def _quality(
    lines: Sequence[ParallelLine],
    given: Sequence[tuple[int, ...]],
    expected: Sequence[tuple[int, ...]],
    tokenizer: Tokenizer,
    method: str,
) -> Quality:
    references = [line.reference for line in lines]
    bleu, chrf = scores([tokenizer.decode(ids) for ids in given], references)
    bleu_float32, chrf_float32 = scores([tokenizer.decode(ids) for ids in expected], references)
    identical = sum(a == b for a, b in zip(given, expected, strict=True)) / len(lines)
    return Quality(len(lines), bleu, bleu_float32, chrf, chrf_float32, round(identical, 4), method, cpu_model())


def _alignment_found(
    directory: Path,
    manifest: Manifest,
    lines: Sequence[ParallelLine],
    outputs: Sequence[tuple[int, ...]],
    tokenizer: Tokenizer,
) -> float | None:
    """Return the share of identical pieces that point at each other; `None` without an alignment graph."""
    graphs, pair = manifest.graphs, manifest.first_pair
    if not graphs.alignment:
        return None
    run = AlignmentRun(
        directory / graphs.alignment,
        GraphPair(directory / graphs.encoder, directory / graphs.decoder_step, manifest.model),
    )
    translated = [
        Translated(line.source, pair, line.source_ids, output)
        for line, output in zip(lines, outputs, strict=True)
        if output
    ]
    attentions = []
    for start in range(0, len(translated), BATCH_SIZE):
        batch = translated[start : start + BATCH_SIZE]
        sources, targets = [each.source_ids for each in batch], [each.target_ids for each in batch]
        attentions += run.attention(sources, targets, manifest.tokenizer.pad_id)
    return share_found([identical_pieces(tokenizer, each) for each in translated], attentions)


def _golden(directory: Path, manifest: Manifest, tokenizer: Tokenizer) -> tuple[GoldenPair, ...]:
    """Return the golden sentences with their int8 translations, for the service's self-test."""
    return tuple(
        dataclasses.replace(golden, output_ids=given, translation=tokenizer.decode(manifest.without_end(given)))
        for golden, given in zip(manifest.golden, decode_golden(directory, manifest), strict=True)
    )
