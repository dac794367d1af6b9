"""Reads and writes buffers on any device, by graphs that do nothing else."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy import typing as npt
from onnx import helper

from service.engine.runtime.session import Buffer, GraphSession, SessionConfig


def put(buffer: Buffer, array: npt.ArrayLike) -> None:
    """Write an array of the buffer's shape, or a single number, into the buffer."""
    contents = np.ascontiguousarray(np.broadcast_to(np.asarray(array, buffer.dtype), buffer.shape))
    session = _identity(buffer.device, buffer.dtype)
    session.run(session.bind({"x": contents}, {"y": buffer}))


def get(buffer: Buffer) -> npt.NDArray[Any]:
    """Return a copy of the buffer's contents."""
    contents: npt.NDArray[Any] = np.zeros(buffer.shape, buffer.dtype)
    session = _identity(buffer.device, buffer.dtype)
    session.run(session.bind({"x": buffer}, {"y": contents}))
    return contents


@cache
def _identity(device: str, dtype: np.dtype[Any]) -> GraphSession:
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "identity",
        [helper.make_tensor_value_info("x", kind, None)],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "identity.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
        return GraphSession(path, SessionConfig(device, intra_op_threads=1), ["x"], ["y"])
