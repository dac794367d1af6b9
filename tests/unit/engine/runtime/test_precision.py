import pytest

from service.bundle.errors import BundleError
from service.engine.runtime.precision import check_precision


@pytest.mark.parametrize(("precision", "device"), [("float32", "cpu"), ("int8", "cpu"), ("float16", "cuda")])
def test_what_a_device_runs_is_taken(precision: str, device: str) -> None:
    check_precision(precision, device, "the bundle")


@pytest.mark.parametrize(
    ("precision", "device", "advice"),
    [
        ("float16", "cpu", "give a bundle in float32 or int8, or choose device 'cuda'"),
        ("float32", "cuda", "give a bundle in float16, or choose device 'cpu'"),
        ("int8", "cuda", "give a bundle in float16, or choose device 'cpu'"),
        ("bfloat16", "cuda", "unknown precision 'bfloat16'"),
    ],
)
def test_the_refusal_is_one_line_that_names_the_choices(precision: str, device: str, advice: str) -> None:
    with pytest.raises(BundleError) as caught:
        check_precision(precision, device, "models/en-de/1")
    line = str(caught.value)
    assert line.startswith("models/en-de/1 ")
    assert advice in line
    assert "float32 on cpu, int8 on cpu, float16 on cuda" in line
    assert "\n" not in line
