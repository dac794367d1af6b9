"""The engine on the GPU in float16, compared with float32 on the CPU."""

from pathlib import Path

from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import SessionConfig
from tests.unit.engine.runtime.half_precision import CONFIG, HALF, SINGLE, check_scores
from tests.unit.engine.runtime.tiny_runners import manifest, write_graphs


def test_the_engines_outputs_have_the_scores_that_it_gives_them(tmp_path: Path) -> None:
    half, single = write_graphs(tmp_path / "half", HALF), write_graphs(tmp_path / "single", SINGLE)
    check_scores(OnnxRunner.load(half, manifest(HALF), CONFIG, SessionConfig("cuda")), single)
