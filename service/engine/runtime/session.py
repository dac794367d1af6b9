"""ONNX Runtime: opens graphs, selects the provider, holds device memory, binds buffers. Only it imports onnxruntime."""

import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy import typing as npt

from service.bundle.errors import BundleError, one_line
from service.engine.cpus import available_cpus
from service.engine.runner import RunTerminated

# Official builds send telemetry to their maker unless it is disabled before loading (its Privacy.md).
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime as ort  # type: ignore[import-untyped, unused-ignore]

Array = npt.NDArray[Any]

_LOG = logging.getLogger(__name__)

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_PROBE = Path(__file__).parent / "graphs" / "copy_blocks.onnx"  # small, and any provider can run it
# On CUDA, GroupQueryAttention takes float16 and bfloat16 only, and the operators of int8 graphs are for the CPU. On the
# CPU, MultiHeadAttention takes float32 only: a float16 graph would be cast back and forth in every layer.
DEVICE_OF_PRECISION = {"float32": "cpu", "int8": "cpu", "float16": "cuda"}


class DeviceUnavailable(Exception):
    """The requested device can't be used here; the message says how to fix that."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Settings for running graphs.

    `device` is "cpu" or "cuda". `intra_op_threads` 0 means one thread per available CPU. Threads that spin between runs
    are faster on an idle machine but much slower when anything else needs the cores: off by default. Prepacked weights
    are a copy in the kernels' own layout: faster runs for twice the memory.
    """

    device: str = "cpu"
    intra_op_threads: int = 0
    allow_spinning: bool = False
    prepacks_weights: bool = True

    def __post_init__(self) -> None:
        if self.device not in _PROVIDERS:
            raise ValueError(f"device is {self.device!r}; allowed: {', '.join(_PROVIDERS)}.")
        if self.intra_op_threads < 0:
            raise ValueError(f"intra_op_threads is {self.intra_op_threads}; allowed: 0 (automatic) or more.")


def check_device(device: str) -> None:
    try:
        _open(_PROBE, SessionConfig(device))
    except DeviceUnavailable:
        raise
    except Exception as error:  # ONNX Runtime's errors have no common base of their own
        raise _does_not_start(device, one_line(error)) from error


class Buffer(NamedTuple):
    """A contiguous tensor at `address` on `device`, in memory that `owner` keeps alive."""

    device: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    address: int
    owner: object

    @classmethod
    def of(cls, array: Array) -> "Buffer":
        assert array.flags.c_contiguous, f"an array of shape {array.shape} is not contiguous and can't be bound"
        return cls("cpu", array.dtype, array.shape, array.ctypes.data, array)

    def rows(self, start: int, stop: int) -> "Buffer":
        assert 0 <= start <= stop <= self.shape[0], f"rows {start} to {stop} of {self.shape[0]}"
        row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        return self._replace(shape=(stop - start, *self.shape[1:]), address=self.address + start * row_bytes)


class DeviceMemory:
    """Bytes on a device, initially zero; `view` locates a tensor in them."""

    def __init__(self, device: str, num_bytes: int) -> None:
        self.device = device
        self.num_bytes = num_bytes
        try:
            self._value = ort.OrtValue.ortvalue_from_numpy(np.zeros(num_bytes, np.uint8), device, 0)
        except Exception as error:  # ONNX Runtime's errors have no common base of their own
            raise DeviceUnavailable(
                f"device {device!r} does not have {num_bytes / 2**20:.0f} MiB left for the rows "
                f"({one_line(error)}); lower --max-slots, or free the device."
            ) from error
        self._address: int = self._value.data_ptr()

    def view(self, offset: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Buffer:
        kind = np.dtype(dtype)
        end = offset + math.prod(shape) * kind.itemsize
        assert 0 <= offset <= end <= self.num_bytes, f"bytes {offset} to {end} of {self.num_bytes}"
        return Buffer(self.device, kind, shape, self._address + offset, self)

    def write(self, contents: npt.NDArray[np.uint8]) -> None:
        """Overwrite the whole memory from the host; no run under way may read it."""
        self._value.update_inplace(contents)

    def read(self) -> npt.NDArray[np.uint8]:
        contents: npt.NDArray[np.uint8] = self._value.numpy()
        return contents


@dataclass(slots=True)
class Binding:
    """Buffers bound to a session's inputs and outputs, which the binding keeps alive."""

    bound: Any  # ort.IOBinding
    inputs: dict[str, Buffer]
    outputs: dict[str, Buffer]


class GraphSession:
    """One graph on one device, run on the caller's memory."""

    def __init__(
        self,
        path: Path,
        config: SessionConfig,
        inputs: Sequence[str],
        outputs: Sequence[str],
        optional_outputs: Sequence[str] = (),
        operators: Path | None = None,
        weights: Mapping[str, Array] | None = None,
    ) -> None:
        """Open a graph whose inputs and outputs must have the given names; it may lack all of `optional_outputs`.

        `operators` is a library of custom operators. `weights` are constants stored in other files (`Weights`); the
        session reads them in place, and frees those that it copied. Without, ONNX Runtime maps these files.
        """
        try:
            self._session = _open(path, config, operators, weights or {})
        except DeviceUnavailable:
            raise
        except Exception as error:  # ONNX Runtime's errors have no common base of their own
            raise BundleError(f"{path} can't be opened by ONNX Runtime {ort.__version__}: {one_line(error)}") from error
        _check_names(path, "inputs", inputs, [item.name for item in self._session.get_inputs()])
        found = [item.name for item in self._session.get_outputs()]
        self.has_optional_outputs = bool(optional_outputs) and any(name in optional_outputs for name in found)
        expected = [*outputs, *optional_outputs] if self.has_optional_outputs else outputs
        _check_names(path, "outputs", expected, found)
        self._copies_from_host = config.device != "cpu"
        self._run_options = ort.RunOptions()
        # No graph capture. If unset, ONNX Runtime's wrapper detects that by an exception: 0.1 ms per run.
        self._run_options.add_run_config_entry("gpu_graph_id", "-1")

    def input_dtype(self, name: str) -> np.dtype[Any]:
        kind = next(item.type for item in self._session.get_inputs() if item.name == name)
        return np.dtype({"tensor(float16)": np.float16, "tensor(float)": np.float32}[kind])

    def bind(self, inputs: Mapping[str, Array | Buffer], outputs: Mapping[str, Array | Buffer]) -> Binding:
        """Bind buffers and contiguous arrays by address; only the outputs named here are fetched.

        Contents may change between runs; an output may share memory with an input (caches that grow in place). Host
        memory is copied to and from the device at each run. The binding keeps all buffers alive.
        """
        binding = Binding(self._session.io_binding(), {}, {})
        self.rebind(binding, inputs)
        for name, memory in outputs.items():
            buffer = binding.outputs[name] = memory if isinstance(memory, Buffer) else Buffer.of(memory)
            binding.bound.bind_output(name, buffer.device, 0, buffer.dtype.type, buffer.shape, buffer.address)
        return binding

    def rebind(self, binding: Binding, inputs: Mapping[str, Array | Buffer]) -> None:
        for name, memory in inputs.items():
            buffer = binding.inputs[name] = memory if isinstance(memory, Buffer) else Buffer.of(memory)
            _bind_input(binding.bound, name, buffer)

    def run(self, binding: Binding) -> None:
        """Run the graph once on a binding of this session; all outputs are complete on return."""
        if self._copies_from_host:  # host memory is copied to the device when it is bound
            for name, buffer in binding.inputs.items():
                if buffer.device == "cpu":
                    _bind_input(binding.bound, name, buffer)
        try:
            self._session.run_with_iobinding(binding.bound, self._run_options)
        except Exception as error:
            if self._run_options.terminate:
                raise RunTerminated("the run was terminated") from error
            raise

    def terminate(self) -> None:
        """Make the run under way and all later ones fail, until `reset`. Thread-safe."""
        self._run_options.terminate = True

    def reset(self) -> None:
        self._run_options.terminate = False


def check_operators(library: Path) -> None:
    ort.SessionOptions().register_custom_ops_library(str(library))


def _open(
    path: Path,
    config: SessionConfig,
    operators: Path | None = None,
    weights: Mapping[str, Array] = MappingProxyType({}),
) -> ort.InferenceSession:
    provider = _PROVIDERS[config.device]
    if provider not in ort.get_available_providers():
        raise DeviceUnavailable(
            f"device {config.device!r} needs ONNX Runtime's {provider}, which is not available here; "
            "install dragoman[gpu] (onnxruntime-gpu) in place of dragoman[cpu], or choose device 'cpu'."
        )
    if config.device == "cuda":
        ort.preload_dlls()  # pip puts the CUDA libraries beside it, where the loader does not look
    _LOG.debug("opening %s", path)
    # Its own fallback would print to standard output.
    options = _session_options(config)
    if operators is not None:
        options.register_custom_ops_library(str(operators))
    constants = {name: ort.OrtValue.from_dlpack(array) for name, array in weights.items()}  # which keep the arrays
    for name, constant in constants.items():
        options.add_initializer(name, constant)
    session = ort.InferenceSession(path, options, providers=[provider], enable_fallback=0)
    if provider not in session.get_providers():
        raise _does_not_start(config.device, "it fell back to the CPU")
    return session


def _does_not_start(device: str, reason: str) -> DeviceUnavailable:
    return DeviceUnavailable(
        f"{_PROVIDERS[device]} is installed but does not start on this machine ({reason}); "
        "check the driver and the CUDA libraries, or choose device 'cpu'."
    )


def _bind_input(bound: Any, name: str, buffer: Buffer) -> None:
    bound.bind_input(name, buffer.device, 0, buffer.dtype.type, buffer.shape, buffer.address)


def _session_options(config: SessionConfig) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = config.intra_op_threads or available_cpus()
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if config.allow_spinning else "0")
    options.add_session_config_entry("session.disable_prepacking", "0" if config.prepacks_weights else "1")
    options.add_session_config_entry("session.load_model_format", "ONNX")  # as checked, whatever the file's name
    options.enable_mem_pattern = False  # one is kept per combination of shapes, and ours vary without limit
    options.log_severity_level = 4  # errors are raised too, and a worker that logs might block on a slow reader
    return options


def _check_names(path: Path, kind: str, expected: Sequence[str], found: Sequence[str]) -> None:
    if sorted(expected) != sorted(found):
        missing, unknown = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
        raise BundleError(
            f"{path} has different {kind} from those that this service binds (missing: {missing or 'none'}, "
            f"unknown: {unknown or 'none'}); export the bundle again with the same version."
        )


def check_precision(precision: str, device: str, where: str) -> None:
    choices = ", ".join(f"{name} on {runs_on}" for name, runs_on in DEVICE_OF_PRECISION.items())
    if precision not in DEVICE_OF_PRECISION:
        raise BundleError(f"{where} has the unknown precision {precision!r}; this service runs {choices}.")
    if DEVICE_OF_PRECISION[precision] != device:
        wanted = [name for name, runs_on in DEVICE_OF_PRECISION.items() if runs_on == device]
        raise BundleError(
            f"{where} is a {precision} bundle, which device {device!r} can't run (runnable: {choices}); "
            f"give a bundle in {' or '.join(wanted)}, or choose device {DEVICE_OF_PRECISION[precision]!r}."
        )
