"""The path of a GPU, float16 and all memory on the device, with the CPU as the device."""

from pathlib import Path

from tests.unit.engine.runtime.half_precision import CONFIG, HALF, SINGLE, check_scores
from tests.unit.engine.runtime.tiny_runners import load_on_device, write_graphs


def test_the_engines_outputs_have_the_scores_that_it_gives_them(tmp_path: Path) -> None:
    """ONNX Runtime casts what it has no kernel for."""
    half, single = write_graphs(tmp_path / "half", HALF), write_graphs(tmp_path / "single", SINGLE)
    check_scores(load_on_device(half, CONFIG, HALF), single)
