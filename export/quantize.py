"""Converts one checkpoint to int8: import, compare with the original, quantize, compare, choose alignments, write."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from export.alignment import Attention, Translated, identical_pieces, share_found
from export.alignment_choice import AlignmentChoice, ByLayer, choose_alignment, cross_attention, mean_of
from export.architecture.stored import Array
from export.bundle_writer import checksums
from export.engine_decode import open_engine, recorded_attention
from export.fidelity import verified_reading
from export.graphs.weights_file import WeightsFile
from export.importers.imported import ImportedCheckpoint
from export.quantization.agreement import FARTHER, LITTLE, POOR, Agreement, Decoded, agreement, decode
from export.quantization.checks import check_fused
from export.quantization.fused_graphs import FusedNodes, shape_of, with_recorded
from export.stages import Stages
from export.verification_sentences import Sentence, alignment_sentences, golden_sentences, random_sentences
from export.verify import VerificationError, golden_pair
from service.bundle import fused_io
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Graphs, ModelShape
from service.domain.errors import counted
from service.text.tokenizers import Tokenizer

DECODER = "decoder.onnx"


def write_int8(
    checkpoint: ImportedCheckpoint,
    tokenizer: Tokenizer,
    directory: Path,
    manifest_of: Callable[[ModelShape, Graphs], Manifest],
    own_sentences: Sequence[Sentence],
    clock: Stages,
) -> Manifest:
    """Write the graphs and the weights to `directory`, which has the tokenizer; return the manifest, without a save.

    Before that, the model in float is compared with its reference: int8 is compared with what was read.
    """
    config, weights = checkpoint.model.config, checkpoint.model.weights
    golden, random = list(golden_sentences(checkpoint, tokenizer, own_sentences)), list(random_sentences(checkpoint))
    verified = verified_reading(checkpoint, [*golden, *random], clock)
    shape = shape_of(config)
    graphs = Graphs(decoder_step=DECODER)
    with WeightsFile(directory) as file:
        made = FusedNodes(config, weights, file)
        encode_node = made.encode_node()
        decode_node = made.decode_node(checkpoint.suppressed_ids, renormalizes=checkpoint.renormalizes)
    encode_node.save(directory / graphs.encoder, shape)
    with_recorded(decode_node, None).save(directory / DECODER, shape)
    check_fused(directory / graphs.encoder, fused_io.ENCODE, shape)
    check_fused(directory / DECODER, fused_io.DECODE, shape)
    clock.done("write", "quantized weights")
    manifest = manifest_of(shape, graphs)
    copying = list(alignment_sentences(checkpoint, tokenizer))
    judged = [*golden, *random, *(each for each in own_sentences if each not in golden)]
    decoded = decode(directory, manifest, [*judged, *copying])
    clock.done("decode", f"{counted(len(decoded), 'sentence')}, with the engine")
    found = agreement(checkpoint, weights, decoded[: len(judged)])
    clock.done("verify", found.line())
    if found.is_poor:
        clock.done("warning", POOR)
    manifest = _with_golden(manifest, tokenizer, decoded[: len(golden)], found)
    translated = [_translated(each, manifest) for each in decoded[len(judged) :]]
    by_layer = cross_attention(config, weights, translated)
    choice = choose_alignment(checkpoint, tokenizer, translated, by_layer)
    clock.done("choose", choice.line())
    with_recorded(decode_node, choice.heads).save(directory / DECODER, shape)
    check_fused(directory / DECODER, fused_io.DECODE, shape)
    graphs = dataclasses.replace(
        graphs, alignment=DECODER, alignment_layer=choice.heads.layer, alignment_reads=choice.heads.reads
    )
    manifest = dataclasses.replace(manifest, graphs=graphs)
    recorded = _check_alignment(checkpoint, weights, directory, manifest, tokenizer, translated, by_layer, choice)
    alignment = {**choice.document(), **recorded}
    clock.done("verify", f"recorded attention: {recorded['moved']:.1%} is elsewhere than in float")
    return dataclasses.replace(
        manifest,
        checksums=checksums(directory),
        verification={**manifest.verification, "alignment": alignment, **verified},
    )


def _with_golden(manifest: Manifest, tokenizer: Tokenizer, decoded: Sequence[Decoded], found: Agreement) -> Manifest:
    eos_id = manifest.tokenizer.eos_id
    complete = [each for each in decoded if each.output[-1:] == (eos_id,)]
    golden = tuple(golden_pair(each.sentence, each.output, tokenizer, eos_id) for each in complete or decoded)
    return dataclasses.replace(manifest, golden=golden, verification={"int8": found.document()})


def _translated(decoded: Decoded, manifest: Manifest) -> Translated:
    sentence = decoded.sentence
    output = manifest.without_end(decoded.output)
    return Translated(sentence.text or "", sentence.languages, sentence.source_ids, output)


def _check_alignment(
    checkpoint: ImportedCheckpoint,
    weights: Mapping[str, Array],
    directory: Path,
    manifest: Manifest,
    tokenizer: Tokenizer,
    translated: Sequence[Translated],
    by_layer: Sequence[ByLayer],
    choice: AlignmentChoice,
) -> dict[str, float]:
    with open_engine(directory, manifest) as engine:
        given = recorded_attention(engine, manifest, [(each.source_ids, each.target_ids) for each in translated])
    expected, rounded = (
        [mean_of(own, choice.heads) for own in each]
        for each in (by_layer, cross_attention(checkpoint.model.config, weights, translated, rounds=True))
    )
    error, most = _moved(given, rounded), FARTHER * _moved(rounded, expected) + LITTLE
    if not error <= most:
        raise VerificationError(
            f"of the attention that the decoder records, {error:.1%} is elsewhere than in the rounded model, and "
            f"{most:.1%} is allowed"
        )
    pieces = [identical_pieces(tokenizer, each) for each in translated]
    return {"share_found_int8": share_found(pieces, given), "moved": round(_moved(given, expected), 4)}


def _moved(given: Sequence[Attention], expected: Sequence[Attention]) -> float:
    """Return the share of the attention (T, S) that is elsewhere, on average over texts."""
    shares = [float(np.abs(a - b).sum(axis=1).mean() / 2) for a, b in zip(given, expected, strict=True) if len(a)]
    return sum(shares) / max(len(shares), 1)
