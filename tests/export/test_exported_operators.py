"""The list of operators that a bundle may use is what export writes, and no more."""

from collections.abc import Callable, Iterator
from pathlib import Path

import onnx

from export.graphs.tracing import trace_encoder
from export.graphs.weights_file import WeightsFile
from service.bundle.graph_file import FUSED_DOMAIN, OPERATORS
from service.bundle.manifest import Manifest
from tests.export.tiny_models import tiny_config, tiny_model
from tests.export.variants import VARIANTS, Variant
from tests.servers import REPOSITORY


def operators(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    """Yield the operators of a graph and of those inside, with their domains."""
    for node in graph.node:
        yield node.domain, node.op_type
        for attribute in node.attribute:
            for inside in (attribute.g, *attribute.graphs):
                yield from operators(inside)


def test_each_operator_that_may_be_used_is_exported(
    exported: tuple[Path, Manifest], variants: Callable[[str], Variant], tmp_path: Path
) -> None:
    """That no other is exported, `export` checks itself (`graphs/checks.py`)."""
    config = tiny_config(activation="silu", layer_norm="scalar", num_encoder_layers=1, num_decoder_layers=1)
    with WeightsFile(tmp_path) as file:
        trace_encoder(tiny_model(config), tmp_path / "encoder.onnx", file)
    folders = exported[0], tmp_path, REPOSITORY / "models", *(variants(name).folder for name in VARIANTS)
    paths = [path for folder in folders for path in folder.rglob("*.onnx")]
    found = {each for path in paths for each in operators(onnx.load(path, load_external_data=False).graph)}
    plain = {(domain, operator) for domain, operator in found if domain != FUSED_DOMAIN}
    assert plain == {(domain, operator) for domain, names in OPERATORS.items() for operator in names}
