"""The fused graphs of a bundle: made from its plain graphs, checked, and added to one that has none."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx_ir

from export.bundle_writer import checksums, staged_bundle
from export.fusing.checks import check_fused
from export.fusing.fused_graph import save_fused
from export.fusing.fused_nodes import decode_node, encode_node
from export.fusing.plain_graph import PlainGraph
from export.stages import Stages
from service.bundle import fused_io
from service.bundle.checksums import check_intact
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import Graphs

FUSED_ENCODER, FUSED_DECODER = "encoder.fused.onnx", "decoder.fused.onnx"


def fuse(directory: Path, say: Callable[[str], None] = lambda line: None) -> Manifest:
    """Add fused graphs to the int8 bundle in `directory`, or replace those it has; its other files stay as they are.

    Raises:
        BundleError: it is not an intact int8 bundle.
        FusingError, GraphError: its graphs can't be fused; the bundle stays as it was.
    """
    clock = Stages(say)
    manifest = Manifest.load(directory)
    if manifest.precision != "int8":
        raise BundleError(f"{directory} is {manifest.precision}; only an int8 bundle has fused graphs.")
    check_intact(directory, manifest)
    old = {manifest.graphs.fused_encoder, manifest.graphs.fused_decoder}
    with staged_bundle(directory) as staging:
        for name in manifest.checksums.keys() - old:
            (staging / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(directory / name, staging / name)
        graphs = write_fused(staging, manifest)
        fused = dataclasses.replace(manifest, graphs=graphs, checksums=checksums(staging))
        fused.save(staging)
    clock.done("fuse", fused_line(directory, graphs))
    return fused


def write_fused(directory: Path, manifest: Manifest) -> Graphs:
    """Write the fused graphs of the int8 bundle in `directory`; return all graphs' names.

    Raises:
        FusingError: the plain graphs are of another form than `quantize` writes.
        GraphError: what was written fails the checks.
    """
    graphs = dataclasses.replace(manifest.graphs, fused_encoder=FUSED_ENCODER, fused_decoder=FUSED_DECODER)
    encoder, decoder_step = directory / graphs.encoder, directory / graphs.decoder_step
    encode = encode_node(PlainGraph(onnx_ir.load(encoder)))
    plain = PlainGraph(onnx_ir.load(decoder_step))
    decode = decode_node(plain, manifest.suppressed_ids, renormalizes=manifest.renormalizes)
    for node, name, shared in ((encode, FUSED_ENCODER, encoder), (decode, FUSED_DECODER, decoder_step)):
        save_fused(node, directory / name, shared)
    check_fused(directory / FUSED_ENCODER, fused_io.ENCODE, manifest.model)
    check_fused(directory / FUSED_DECODER, fused_io.DECODE, manifest.model)
    return graphs


def fused_line(directory: Path, graphs: Graphs) -> str:
    """Describe the fused graphs that were written."""
    names = (graphs.fused_encoder, graphs.fused_decoder)
    num_bytes = sum((directory / name).stat().st_size for name in names)
    return f"{' and '.join(names)} ({num_bytes / 1e3:.0f} kB)"
