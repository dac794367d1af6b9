"""`quantize` runs where only ONNX is installed: "without torch", as its help and the docs promise."""

import subprocess
import sys

from tests.patience import patient


def test_quantize_needs_no_torch() -> None:
    told = "import sys, export.quantize; print('onnx' in sys.modules, 'torch' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, timeout=patient(60), check=True
    )
    assert answer.stdout.split() == ["True", "False"]
