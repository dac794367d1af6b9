"""The list of operators that a bundle may use is what export writes, and no more."""

from collections.abc import Callable, Iterator

import onnx

from service.bundle.graph_file import FUSED_DOMAIN, OPERATORS
from tests.export.conftest import Converted
from tests.export.variants import ALIGNMENTS, Variant
from tests.servers import REPOSITORY


def operators(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    """Yield the operators of a graph and of those inside, with their domains."""
    for node in graph.node:
        yield node.domain, node.op_type
        for attribute in node.attribute:
            for inside in (attribute.g, *attribute.graphs):
                yield from operators(inside)


def test_each_operator_that_may_be_used_is_exported(
    conversions: Callable[[str], Converted], variants: Callable[[str], Variant]
) -> None:
    """That no other is exported, `export` checks itself (`graphs/checks.py`)."""
    bundles = (conversions(name)[1] for name in ("native", "marian"))
    folders = REPOSITORY / "models", *bundles, *(variants(name).folder for name in ALIGNMENTS)
    paths = [path for folder in folders for path in folder.rglob("*.onnx")]
    found = {each for path in paths for each in operators(onnx.load(path, load_external_data=False).graph)}
    plain = {(domain, operator) for domain, operator in found if domain != FUSED_DOMAIN}
    assert plain == {(domain, operator) for domain, names in OPERATORS.items() for operator in names}
