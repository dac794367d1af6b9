"""The fused graphs of a bundle: made from its plain graphs, and checked."""

import dataclasses
from pathlib import Path

import onnx_ir

from export.fusing.fused_graph import save_fused
from export.fusing.fused_nodes import decode_node, encode_node
from export.fusing.plain_graph import PlainGraph
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Graphs

FUSED_ENCODER, FUSED_DECODER = "encoder.fused.onnx", "decoder.fused.onnx"


def write_fused(directory: Path, manifest: Manifest) -> Graphs:
    """Write the fused graphs of the int8 bundle in `directory`; return the graphs' names, these included.

    Raises:
        FusingError: the plain graphs are of another form than `quantize` writes.
    """
    graphs = manifest.graphs
    encoder, decoder_step = directory / graphs.encoder, directory / graphs.decoder_step
    encode = encode_node(PlainGraph(onnx_ir.load(encoder)))
    save_fused(encode, directory / FUSED_ENCODER, encoder)
    plain = PlainGraph(onnx_ir.load(decoder_step))
    decode = decode_node(plain, manifest.suppressed_ids, renormalizes=manifest.renormalizes)
    save_fused(decode, directory / FUSED_DECODER, decoder_step)
    return dataclasses.replace(graphs, fused_encoder=FUSED_ENCODER, fused_decoder=FUSED_DECODER)
