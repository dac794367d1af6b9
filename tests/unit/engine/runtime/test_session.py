import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from service.bundle import graph_io
from service.bundle.errors import BundleError
from service.engine.runtime import session
from service.engine.runtime.session import (
    Buffer,
    DeviceMemory,
    DeviceUnavailable,
    GraphSession,
    SessionConfig,
    check_device,
    check_precision,
)
from tests.patience import patient
from tests.servers import REPOSITORY
from tests.unit.engine.runtime.tiny_graphs import TinyModel, save_encoder

ONE_THREAD = SessionConfig(intra_op_threads=1)
CROSS = graph_io.cross_names(2)


@pytest.fixture(scope="module")
def encoder_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "encoder.onnx"
    save_encoder(TinyModel(), path)
    return path


@pytest.fixture
def encoder(encoder_path: Path) -> GraphSession:
    return GraphSession(encoder_path, ONE_THREAD, graph_io.encoder_inputs(), CROSS)


def test_outputs_land_in_the_bound_arrays_and_inputs_are_read_at_each_run(
    encoder: GraphSession, encoder_path: Path
) -> None:
    source_ids, lengths = np.array([[5, 6, 7], [8, 9, 0]]), np.array([3, 2], np.int32)
    outputs = {name: np.zeros((2, 2, 3, 8), np.float32) for name in CROSS}
    binding = encoder.bind({"source_ids": source_ids, "source_lengths": lengths}, outputs)
    plain = ort.InferenceSession(encoder_path, providers=["CPUExecutionProvider"])
    for first in (5, 11):
        source_ids[0, 0] = first
        encoder.run(binding)
        expected = plain.run(CROSS, {"source_ids": source_ids, "source_lengths": lengths})
        for name, array in zip(CROSS, expected, strict=True):
            np.testing.assert_allclose(outputs[name], array, atol=1e-5)


def test_int8_products_do_not_saturate(tmp_path: Path) -> None:
    """Pairs of these exceed 16 bits, in which CPUs without VNNI add them up."""
    weights = numpy_helper.from_array(np.full((64, 16), 127, np.int8), "weights")
    product = helper.make_node("MatMulInteger", ["values", "weights"], ["sums"])
    values = helper.make_tensor_value_info("values", TensorProto.UINT8, ["rows", 64])
    sums = helper.make_tensor_value_info("sums", TensorProto.INT32, ["rows", 16])
    graph = helper.make_graph([product], "product", [values], [sums], [weights])
    path = tmp_path / "product.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    outputs = {"sums": np.zeros((3, 16), np.int32)}
    opened = GraphSession(path, ONE_THREAD, ["values"], ["sums"])
    opened.run(opened.bind({"values": np.full((3, 64), 255, np.uint8)}, outputs))
    assert (outputs["sums"] == 64 * 127 * 255).all()


def test_a_strided_array_is_not_bound(encoder: GraphSession) -> None:
    with pytest.raises(AssertionError, match="contiguous"):
        encoder.bind({"source_ids": np.zeros((4, 4), np.int64)[:, :2]}, {})


def test_a_file_that_is_no_graph_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "encoder.onnx"
    for content in (b"", b"not a graph", None):
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        with pytest.raises(BundleError, match=r"encoder\.onnx") as caught:
            GraphSession(path, ONE_THREAD, graph_io.encoder_inputs(), CROSS)
        assert "\n" not in str(caught.value)


def test_a_graph_of_another_contract_is_refused(encoder_path: Path) -> None:
    with pytest.raises(BundleError, match=r"missing: \['cross_key\.2', 'cross_value\.2'\]"):
        GraphSession(encoder_path, ONE_THREAD, graph_io.encoder_inputs(), graph_io.cross_names(3))


@pytest.mark.parametrize("options", [{"device": "tpu"}, {"intra_op_threads": -1}])
def test_wrong_settings_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="allowed"):
        SessionConfig(**options)  # type: ignore[arg-type]


@pytest.mark.skipif("CUDAExecutionProvider" in ort.get_available_providers(), reason="this machine has CUDA")
def test_a_device_without_its_provider_is_refused_in_one_line() -> None:
    with pytest.raises(DeviceUnavailable, match="onnxruntime-gpu") as caught:
        check_device("cuda")
    assert "\n" not in str(caught.value)


class _NoDriver:
    """A GPU build of ONNX Runtime on a machine without a driver: listed, but unable to start."""

    def __init__(self, fails: bool) -> None:
        self.fails = fails

    def get_available_providers(self) -> list[str]:
        return ["CUDAExecutionProvider", "CPUExecutionProvider"]

    def preload_dlls(self) -> None:
        pass

    def InferenceSession(self, path: Path, options: object, *, providers: list[str], enable_fallback: int) -> object:  # noqa: N802
        assert providers == ["CUDAExecutionProvider"]
        assert not enable_fallback, "ONNX Runtime's own would print to standard output and go on with the CPU"
        if self.fails:
            raise RuntimeError("CUDA failure 35: CUDA driver version is insufficient\n  for CUDA runtime version")
        return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def __getattr__(self, name: str) -> object:
        return getattr(ort, name)


@pytest.mark.parametrize(("fails", "reason"), [(True, "driver version is insufficient"), (False, "fell back")])
def test_a_provider_that_does_not_start_is_the_devices_fault_not_the_bundles(
    monkeypatch: pytest.MonkeyPatch, fails: bool, reason: str
) -> None:
    monkeypatch.setattr(session, "ort", _NoDriver(fails))
    with pytest.raises(DeviceUnavailable, match=reason) as caught:
        check_device("cuda")
    assert "choose device 'cpu'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_much_memory_is_refused_in_one_line() -> None:
    with pytest.raises(DeviceUnavailable, match=r"have 1099511627776 MiB left .* lower --max-slots") as caught:
        DeviceMemory("cpu", 2**60)
    assert "\n" not in str(caught.value)


def test_a_view_lies_inside_its_memory() -> None:
    memory = DeviceMemory("cpu", 24)
    inside = memory.view(8, np.float32, (2, 2))
    assert inside == Buffer("cpu", np.dtype(np.float32), (2, 2), memory.view(0, np.uint8, (1,)).address + 8, memory)
    for offset, shape in ((-4, (1,)), (8, (5,)), (24, (1,))):
        with pytest.raises(AssertionError, match="of 24"):
            memory.view(offset, np.float32, shape)


@pytest.mark.parametrize(
    ("code", "is_silent"),
    [
        ("from service.engine.runtime.session import check_device; check_device('cpu')", True),
        ("import onnxruntime; onnxruntime.InferenceSession('service/engine/runtime/graphs/copy_blocks.onnx')", False),
    ],
)
def test_onnx_runtime_keeps_no_identifier_to_report_with(tmp_path: Path, code: str, is_silent: bool) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in ("ORT_DISABLE_TELEMETRY", "CI")}
    silenced = kept | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    # The second case is the control: it would report, so it runs without a network.
    alone = [] if is_silent else ["unshare", "--map-root-user", "--net"]
    run = [*alone, sys.executable, "-c", code]
    subprocess.run(run, cwd=REPOSITORY, env=silenced, check=True, timeout=patient(60))
    assert (not list(tmp_path.rglob("*"))) == is_silent


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
    for taken in (("float32", "cpu"), ("int8", "cpu"), ("float16", "cuda")):
        check_precision(*taken, "the bundle")
