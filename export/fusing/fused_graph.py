"""Writes a fused graph: one node, whose large constants are bytes of the plain graph's file."""

import hashlib
from pathlib import Path

import numpy as np
import onnx

from export.fusing.fused_nodes import FusedNode
from export.fusing.interface import NAMES, declared
from export.fusing.plain_graph import Array
from service.bundle import fused_io

OPSET, IR_VERSION, DOMAIN_VERSION = 21, 10, 1
SHARED_BYTES = 256  # constants of at least this size are not copied, but read from the plain graph's file


def save_fused(node: FusedNode, path: Path, plain: Path) -> None:
    """Write the graph of `node` to `path`, beside the `plain` one whose weights it shares. Equal constants are one."""
    inputs, outputs = NAMES[node.operator]
    values = declared(
        node.operator,
        node.attributes["num_decoder_layers" if node.operator == fused_io.ENCODE else "num_layers"],
        node.attributes["num_heads"],
        node.attributes["head_size"],
    )
    store = _Store(plain)
    constants = [store.add(name, array) for name, array in node.constants]
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node(
                node.operator, [*inputs, *constants], outputs, domain=fused_io.DOMAIN, **node.attributes
            )
        ],
        path.stem,
        values[: len(inputs)],
        values[len(inputs) :],
        store.tensors,
    )
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(fused_io.DOMAIN, DOMAIN_VERSION)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="dragoman")
    path.write_bytes(model.SerializeToString(deterministic=True))


class _Store:
    """The constants of a fused graph, each stored once."""

    def __init__(self, plain: Path) -> None:
        self.tensors: list[onnx.TensorProto] = []
        self._plain, self._bytes = plain.name, plain.read_bytes()
        self._names: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._last = 0

    def add(self, name: str, array: Array) -> str:
        """Store a constant, if it is new, and return its name."""
        data = np.ascontiguousarray(array).tobytes()
        key = (array.dtype.str, array.shape, hashlib.sha256(data).digest())
        if key not in self._names:
            self._names[key] = name
            self.tensors.append(self._tensor(name, array, data))
        return self._names[key]

    def _tensor(self, name: str, array: Array, data: bytes) -> onnx.TensorProto:
        tensor = onnx.TensorProto(name=name, dims=array.shape)
        tensor.data_type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        offset = self._find(data) if len(data) >= SHARED_BYTES else -1
        if offset < 0:
            tensor.raw_data = data
            return tensor
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", self._plain), ("offset", str(offset)), ("length", str(len(data)))):
            tensor.external_data.add(key=key, value=value)
        return tensor

    def _find(self, data: bytes) -> int:
        """Return where the bytes are in the plain graph's file: usually after those of the previous constant."""
        offset = self._bytes.find(data, self._last)
        if offset < 0:
            offset = self._bytes.find(data)
        self._last = max(offset, 0)
        return offset
