"""The functions of `kernels/src/compute/compute.h`, called with NumPy arrays."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

INSTRUCTION_SETS = ("avx512-vnni", "avx-vnni", "avx2", "neon-dot", "portable")
ACTIVATIONS = ("identity", "relu", "gelu", "silu")

Floats = NDArray[np.float32]
Levels = NDArray[np.uint8]
Weights = NDArray[np.int8]
Indices = NDArray[np.int32]


class _Dense(Structure):
    _fields_ = [
        ("num_inputs", c_int32),
        ("num_outputs", c_int32),
        ("num_groups", c_int32),
        ("num_blocks", c_int32),
        ("weights", c_void_p),
        ("offsets", c_void_p),
        ("order", c_void_p),
        ("scales", c_void_p),
        ("biases", c_void_p),
        ("input_scale", c_float),
        ("zero_point", c_int32),
    ]


class Quantization(Structure):
    """How a float row becomes 8 bits."""

    _fields_ = [("inverse_scale", c_float), ("zero_point", c_int32)]


class _Norm(Structure):
    _fields_ = [
        ("gain", c_void_p),
        ("bias", c_void_p),
        ("width", c_int32),
        ("epsilon", c_float),
        ("is_scalar", c_bool),
    ]


class _CacheShape(Structure):
    _fields_ = [("num_heads", c_int32), ("head_size", c_int32), ("padded_head_size", c_int32)]


def _function(result: Any, *arguments: Any) -> Any:
    return CFUNCTYPE(result, *arguments)


_Rows = (c_void_p, c_int64, c_int64)


class _Table(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("quantize", _function(None, *_Rows, c_int64, Quantization, c_void_p, c_int64)),
        ("norm", _function(None, POINTER(_Norm), *_Rows, Quantization, c_void_p, c_int64, c_void_p, c_int64)),
        ("prepare", _function(None, POINTER(_Dense), c_void_p, c_void_p)),
        ("dense", _function(None, POINTER(_Dense), *_Rows, c_bool, c_void_p, c_int64)),
        ("dense_activated", _function(None, POINTER(_Dense), *_Rows, c_int32, Quantization, c_void_p, c_int64)),
        ("dense_arg_max", _function(None, POINTER(_Dense), *_Rows, c_void_p, c_void_p)),
        ("append", _function(None, POINTER(_CacheShape), c_void_p, c_void_p, c_int64, c_void_p)),
        (
            "attend",
            _function(
                None, POINTER(_CacheShape), c_void_p, c_float, c_void_p, c_int64, c_void_p, c_int64, Quantization,
                c_void_p, c_void_p, c_void_p,
            ),
        ),
        ("embed", _function(None, c_void_p, c_float, c_void_p, c_int64, c_void_p)),
        ("is_finite", _function(c_bool, c_void_p, c_int64)),
        ("log_sum", _function(None, c_void_p, c_int64, c_void_p, c_void_p)),
        ("top", _function(c_int, c_void_p, c_int64, c_int, c_void_p, c_void_p)),
    ]  # fmt: skip


def padded(values: NDArray[Any], multiple: int, fill: float = 0) -> NDArray[Any]:
    """Return `values` with its last axis filled up to a multiple of a width."""
    missing = -values.shape[-1] % multiple
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)], constant_values=fill)


@dataclass
class DenseLayer:
    """x W^T + b for 8-bit x: weights (N, K), scales and biases (N,)."""

    weights: Weights
    scales: Floats
    biases: Floats
    zero_point: int

    def values(self, levels: Levels) -> Floats:
        """Return the exact result for levels (M, K), with one rounding for each operation on floats."""
        sums = (levels.astype(np.int64) - self.zero_point) @ self.weights.astype(np.int64).T
        value: Floats = sums.astype(np.int32).astype(np.float32) * self.scales + self.biases
        return value

    def packed(self) -> Weights:
        """Return the weights as (blocks, groups, 64, 4)."""
        n, k = self.weights.shape
        full = np.pad(self.weights, [(0, -n % 64), (0, -k % 4)])
        return np.ascontiguousarray(full.reshape(-1, 64, full.shape[1] // 4, 4).swapaxes(1, 2))


def _scratch_size(num_heads: int, num_tokens: int) -> int:
    """Return `CacheShape::scratch_size`."""
    return -(-num_heads // 16) * 16 * 17 + num_heads * -(-num_tokens // 16) * 16


class Compute:
    """The arithmetic of one instruction set. Results come without padding, unless said."""

    def __init__(self, table: _Table) -> None:
        self.name = table.name.decode()
        self._table = table

    @classmethod
    def find(cls, library: ctypes.CDLL, name: str) -> "Compute | None":
        """Return the functions for a name, or None if this CPU cannot run them; "" means the fastest."""
        library.dragoman_compute.restype = POINTER(_Table)
        library.dragoman_compute.argtypes = [c_char_p]
        table = library.dragoman_compute(name.encode())
        return cls(table.contents) if table else None

    def quantize(self, x: Floats, to: Quantization) -> Levels:
        """Return the levels of (M, width)."""
        rows, width = x.shape
        full, levels = padded(x, 16, np.nan), padded(np.zeros(x.shape, np.uint8), 64)
        self._table.quantize(full.ctypes.data, full.shape[1], rows, width, to, levels.ctypes.data, levels.shape[1])
        return levels[:, :width]

    def norm(
        self, x: Floats, gain: Floats, bias: Floats, epsilon: float, is_scalar: bool, to: Quantization
    ) -> tuple[Floats, Levels]:
        """Return what (M, width) is normalized to, and its levels."""
        rows, width = x.shape
        full, normed = padded(x, 16, 1e30), padded(np.zeros_like(x), 16)
        levels = padded(np.zeros(x.shape, np.uint8), 64)
        gain, bias = padded(gain, 16), padded(bias, 16)
        norm = _Norm(gain.ctypes.data, bias.ctypes.data, width, epsilon, is_scalar)
        self._table.norm(
            norm, full.ctypes.data, full.shape[1], rows, to,
            normed.ctypes.data, normed.shape[1], levels.ctypes.data, levels.shape[1],
        )  # fmt: skip
        return normed[:, :width], levels[:, :width]

    def dense(self, layer: DenseLayer, levels: Levels, residual: Floats | None = None) -> Floats:
        """Return the layer's result for (M, K), added to `residual` if there is one."""
        dense, inputs, alive = self._dense(layer, levels)
        rows, outputs = len(levels), len(layer.weights)
        y = padded(np.full((rows, outputs), np.nan, np.float32) if residual is None else residual, 64)
        adds = residual is not None
        self._table.dense(dense, inputs.ctypes.data, inputs.shape[1], rows, adds, y.ctypes.data, y.shape[1])
        del alive
        return y[:, :outputs]

    def dense_activated(self, layer: DenseLayer, levels: Levels, activation: str, to: Quantization) -> Levels:
        """Return the levels of the layer's activated result for (M, K)."""
        dense, inputs, alive = self._dense(layer, levels)
        rows, outputs = len(levels), len(layer.weights)
        out = padded(np.zeros((rows, outputs), np.uint8), 64)
        self._table.dense_activated(
            dense, inputs.ctypes.data, inputs.shape[1], rows, ACTIVATIONS.index(activation), to,
            out.ctypes.data, out.shape[1],
        )  # fmt: skip
        del alive
        return out[:, :outputs]

    def dense_arg_max(self, layer: DenseLayer, levels: Levels) -> tuple[Indices, Floats]:
        """Return the column of each row's largest result, and that result."""
        dense, inputs, alive = self._dense(layer, levels)
        best, value = np.full(len(levels), -1, np.int32), np.zeros(len(levels), np.float32)
        self._table.dense_arg_max(
            dense, inputs.ctypes.data, inputs.shape[1], len(levels), best.ctypes.data, value.ctypes.data
        )
        del alive
        return best, value

    def append(self, keys: Floats, values: Floats, position: int, layer: Floats) -> None:
        """Write keys and values, each (H, D), to `position` of a layer (blocks, H, 2, 16 * padded D)."""
        shape = _CacheShape(layer.shape[1], keys.shape[1], layer.shape[3] // 16)
        self._table.append(shape, keys.ctypes.data, values.ctypes.data, position, layer.ctypes.data)

    def attend(
        self, query: Floats, scale: float, cache: Floats, num_tokens: int, history: Indices | None, to: Quantization
    ) -> tuple[Floats, Levels]:
        """Return the attention (H, D) of a query (H, D), and its levels, to (rows, blocks, H, 2, 16 * padded D).

        Without `history`, the tokens are those of the first row.
        """
        shape = _CacheShape(cache.shape[2], query.shape[1], cache.shape[4] // 16)
        levels = np.full(query.size + 64, 77, np.uint8)
        heads = np.append(query, np.full(64, 77, np.float32)).astype(np.float32)  # in place
        scratch = np.full(_scratch_size(shape.num_heads, num_tokens), np.nan, np.float32)
        slots = None if history is None else history.ctypes.data
        for to_levels in (levels.ctypes.data, None):  # levels first, or there is no query any more
            self._table.attend(
                shape, heads.ctypes.data, scale, cache.ctypes.data, num_tokens, slots, cache[0].size, to,
                to_levels, heads.ctypes.data, scratch.ctypes.data,
            )  # fmt: skip
        assert np.all(levels[query.size :] == 77)
        assert np.all(heads[query.size :] == 77)
        return heads[: query.size].reshape(query.shape), levels[: query.size].reshape(query.shape)

    def embed(self, token: Weights, scale: float, position: Floats) -> Floats:
        """Return a token's embedding."""
        x = np.zeros(len(position), np.float32)
        self._table.embed(token.ctypes.data, scale, position.ctypes.data, len(position), x.ctypes.data)
        return x

    def is_finite(self, x: Floats) -> bool:
        """Return whether all are finite."""
        return bool(self._table.is_finite(x.ctypes.data, x.size))

    def log_sum(self, x: Floats) -> tuple[np.float32, np.float32]:
        """Return the largest and the sum of exp(x - largest)."""
        largest, total = np.zeros(1, np.float32), np.zeros(1, np.float32)
        self._table.log_sum(x.ctypes.data, x.size, largest.ctypes.data, total.ctypes.data)
        return largest[0], total[0]

    def top(self, x: Floats, num_wanted: int) -> tuple[Indices, Floats]:
        """Return the indices of the largest values and these."""
        indices, values = np.full(64, -1, np.int32), np.full(64, np.nan, np.float32)
        found = self._table.top(x.ctypes.data, x.size, num_wanted, indices.ctypes.data, values.ctypes.data)
        assert np.all(indices[found:] == -1)
        return indices[:found], values[:found]

    def _dense(self, layer: DenseLayer, levels: Levels) -> tuple[_Dense, Levels, Any]:
        (outputs, inputs), packed = layer.weights.shape, aligned(layer.packed())
        scales, biases = padded(layer.scales, 64), padded(layer.biases, 64)
        offsets = np.zeros(len(scales), np.int32)
        order = np.zeros((packed.shape[0], 4, 1 + packed.shape[1] // 2), np.uint16)
        dense = _Dense(
            inputs, outputs, packed.shape[1], packed.shape[0], packed.ctypes.data, None, None, scales.ctypes.data,
            biases.ctypes.data, 1.0, layer.zero_point,
        )  # fmt: skip
        self._table.prepare(dense, offsets.ctypes.data, order.ctypes.data)
        assert dense.offsets == offsets.ctypes.data
        return dense, padded(levels, 64, 255), (packed, scales, biases, offsets, order)


def aligned(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that begins at a multiple of 64 bytes."""
    memory = np.empty(values.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy
