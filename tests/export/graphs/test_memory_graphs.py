import onnx
import pytest

from export.graphs import memory_graphs


@pytest.mark.parametrize("name", sorted(memory_graphs.all_graphs()))
def test_the_service_carries_the_graphs_that_are_built_here(name: str) -> None:
    carried = onnx.load(memory_graphs.DIRECTORY / name)
    assert carried == memory_graphs.all_graphs()[name], "run python -m export.graphs.memory_graphs"


def test_the_service_carries_no_others() -> None:
    carried = {path.name for path in memory_graphs.DIRECTORY.iterdir()}
    assert carried == memory_graphs.all_graphs().keys()
