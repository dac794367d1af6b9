"""ONNX Runtime: opens the graphs, picks the provider, binds buffers. The only importer of onnxruntime."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped, unused-ignore]
from numpy import typing as npt

from service.bundle.manifest import BundleError
from service.engine.cpus import available_cpus
from service.engine.runner import RunTerminated

Array = npt.NDArray[Any]

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class DeviceUnavailable(Exception):
    """The device that was asked for can't be used here; the message says what to do."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """How to run graphs.

    `device` is "cpu" or "cuda". `intra_op_threads` is 0 for one thread per CPU that the process may use. Threads that
    spin between runs are faster on an idle machine, and collapse when anything else wants the cores: off by default.
    """

    device: str = "cpu"
    intra_op_threads: int = 0
    allow_spinning: bool = False

    def __post_init__(self) -> None:
        if self.device not in _PROVIDERS:
            raise ValueError(f"device is {self.device!r}; allowed are {', '.join(_PROVIDERS)}.")
        if self.intra_op_threads < 0:
            raise ValueError(f"intra_op_threads is {self.intra_op_threads}; allowed is 0 (automatic) or more.")


def check_device(device: str) -> None:
    """Check that the installed ONNX Runtime has a provider for the device.

    Raises:
        DeviceUnavailable: it has none.
    """
    if _PROVIDERS[device] not in ort.get_available_providers():
        raise DeviceUnavailable(
            f"device {device!r} needs ONNX Runtime's {_PROVIDERS[device]}, which is not available here; "
            "install dragoman[gpu] (onnxruntime-gpu) in place of dragoman[cpu], or choose device 'cpu'."
        )


@dataclass(slots=True)
class Binding:
    """Arrays bound to a session's inputs and outputs, alive as long as this is."""

    bound: Any  # ort.IOBinding
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]


class GraphSession:
    """One graph on one device, run on the caller's arrays."""

    def __init__(self, path: Path, config: SessionConfig, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Open a graph whose inputs and outputs must have the given names.

        Raises:
            DeviceUnavailable: the device has no provider, or the provider did not start.
            BundleError: the file is no graph that this ONNX Runtime can run, or its names differ.
        """
        check_device(config.device)
        if config.device == "cuda":
            ort.preload_dlls()  # the CUDA libraries that pip installed beside it lie where the loader does not look
        provider = _PROVIDERS[config.device]
        try:
            self._session = ort.InferenceSession(path, _session_options(config), providers=[provider])
        except Exception as error:  # ONNX Runtime's errors have no common base of their own
            raise BundleError(
                f"{path} can't be opened by ONNX Runtime {ort.__version__}: {_one_line(error)}"
            ) from error
        if provider not in self._session.get_providers():
            raise DeviceUnavailable(
                f"{provider} is installed but did not start on this machine; check the driver and the CUDA libraries, "
                "or choose device 'cpu'."
            )
        _check_names(path, "inputs", inputs, [item.name for item in self._session.get_inputs()])
        _check_names(path, "outputs", outputs, [item.name for item in self._session.get_outputs()])
        self._copies_when_bound = config.device != "cpu"  # then host inputs are read at the time of binding
        self._run_options = ort.RunOptions()

    def input_dtype(self, name: str) -> np.dtype[Any]:
        """The element type that an input wants."""
        kind = next(item.type for item in self._session.get_inputs() if item.name == name)
        return np.dtype({"tensor(float16)": np.float16, "tensor(float)": np.float32}[kind])

    def bind(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> Binding:
        """Bind contiguous arrays by address; only the outputs that are named are fetched.

        Contents may change between runs, and an output may be the same memory as an input (caches that grow in
        place). The binding keeps the arrays alive.
        """
        binding = Binding(self._session.io_binding(), inputs, outputs)
        self._bind_inputs(binding)
        for name, array in outputs.items():
            assert array.flags.c_contiguous, f"output {name} is not contiguous"
            binding.bound.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        return binding

    def run(self, binding: Binding) -> None:
        """Run the graph once on a binding of this session.

        Raises:
            RunTerminated: `terminate` was called.
            Exception: ONNX Runtime's own, of many kinds, when the run fails.
        """
        if self._copies_when_bound:
            self._bind_inputs(binding)
        try:
            self._session.run_with_iobinding(binding.bound, self._run_options)
        except Exception as error:
            if self._run_options.terminate:
                raise RunTerminated("the run was terminated") from error
            raise

    def _bind_inputs(self, binding: Binding) -> None:
        for name, array in binding.inputs.items():
            assert array.flags.c_contiguous, f"input {name} is not contiguous"
            binding.bound.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)

    def terminate(self) -> None:
        """Make the run under way and all later ones fail, until `reset`. Thread-safe."""
        self._run_options.terminate = True

    def reset(self) -> None:
        """Take `terminate` back."""
        self._run_options.terminate = False


def _session_options(config: SessionConfig) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = config.intra_op_threads or available_cpus()
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if config.allow_spinning else "0")
    options.enable_mem_pattern = False  # a pattern is kept per combination of shapes, and ours vary without end
    options.log_severity_level = 3  # errors
    return options


def _check_names(path: Path, kind: str, expected: Sequence[str], found: Sequence[str]) -> None:
    if sorted(expected) != sorted(found):
        missing, unknown = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
        raise BundleError(
            f"{path} has other {kind} than this service binds (missing: {missing or 'none'}, "
            f"unknown: {unknown or 'none'}); "
            "export the bundle again with the same version."
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
