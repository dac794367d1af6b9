"""The functions of `kernels/src/compute/compute.h`, called with NumPy arrays."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.quantization.weights import pack
from tests.references.bfloat16 import Bits

INSTRUCTION_SETS = ("avx512-vnni", "avx-vnni", "avx2", "neon-dot", "portable")
ACTIVATIONS = ("identity", "relu", "gelu", "silu", "gelu_tanh")
INTO = ("set", "add", "multiply")
NORMS = ("vector", "scalar", "rms")
ZERO = 128  # `kZero`

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
        ("zero_point", c_int32),
    ]


class _Levels(Structure):
    _fields_ = [("levels", c_void_p), ("stride", c_int64), ("scales", c_void_p)]


class _Norm(Structure):
    _fields_ = [
        ("gain", c_void_p),
        ("bias", c_void_p),
        ("width", c_int32),
        ("epsilon", c_float),
        ("kind", c_int32),
    ]


class _Columns(Structure):
    _fields_ = [("weights", c_void_p), ("stride", c_int64), ("sums", c_void_p)]


class _ScoreBias(Structure):
    _fields_ = [("values", c_void_p), ("stride", c_int64), ("step", c_int64)]


class _CachedTokens(Structure):
    _fields_ = [
        ("layer", c_void_p),
        ("count", c_int64),
        ("history", c_void_p),
        ("history_stride", c_int64),
        ("row_stride", c_int64),
        ("ahead", c_int64),
    ]


class _Queries(Structure):
    _fields_ = [("heads", c_void_p), ("stride", c_int64), ("count", c_int64)]


class _CacheShape(Structure):
    _fields_ = [("num_heads", c_int32), ("head_size", c_int32), ("padded_head_size", c_int32)]


_Rows = (c_void_p, c_int64, c_int64)


class _Table(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("quantize", CFUNCTYPE(None, *_Rows, c_int64, c_int32, POINTER(_Levels))),
        ("norm", CFUNCTYPE(None, POINTER(_Norm), *_Rows, c_void_p, c_int64, POINTER(_Levels))),
        ("prepare", CFUNCTYPE(None, POINTER(_Dense), c_void_p, c_void_p)),
        ("dense", CFUNCTYPE(None, POINTER(_Dense), POINTER(_Levels), c_int64, c_int32, c_void_p, c_int64)),
        ("dense_activated", CFUNCTYPE(None, POINTER(_Dense), POINTER(_Levels), c_int64, c_int32, c_void_p, c_int64)),
        ("dense_arg_max", CFUNCTYPE(None, POINTER(_Dense), POINTER(_Levels), c_int64, c_void_p, c_void_p)),
        (
            "dense_columns",
            CFUNCTYPE(None, POINTER(_Dense), POINTER(_Columns), c_void_p, c_float, c_void_p, c_int64, c_void_p),
        ),
        ("form_heads", CFUNCTYPE(None, POINTER(_Norm), c_void_p, c_int64, c_int64, c_void_p)),
        ("append", CFUNCTYPE(None, POINTER(_CacheShape), c_void_p, c_void_p, c_int64, c_void_p)),
        (
            "attend",
            CFUNCTYPE(
                None, POINTER(_CacheShape), POINTER(_Queries), c_float, POINTER(_ScoreBias), POINTER(_CachedTokens),
                c_void_p,
            ),
        ),
        ("recur", CFUNCTYPE(None, c_void_p, c_void_p, c_int64, c_void_p)),
        ("embed", CFUNCTYPE(None, c_void_p, c_int64, c_float, c_void_p, c_int64, c_void_p)),
        ("is_finite", CFUNCTYPE(c_bool, c_void_p, c_int64)),
        ("log_sum", CFUNCTYPE(None, c_void_p, c_int64, c_void_p, c_void_p)),
        ("top", CFUNCTYPE(c_int, c_void_p, c_int64, c_int32, c_int, c_int, c_void_p, c_void_p)),
    ]  # fmt: skip


def padded(values: NDArray[Any], multiple: int, fill: float = 0) -> NDArray[Any]:
    """Return `values` with its last axis filled up to a multiple of a width."""
    missing = -values.shape[-1] % multiple
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)], constant_values=fill)


@dataclass
class Quantized:
    """Rows in 8 bits: levels (M, K), and the scale of each row (M,)."""

    levels: Levels
    scales: Floats

    def rows(self, first: int, end: int) -> "Quantized":
        """Return some of the rows."""
        return Quantized(self.levels[first:end], self.scales[first:end])


def quantized(x: Floats, zero_point: int) -> Quantized:
    """Return what `Compute.quantize` must make of (M, K), operation by operation in float32."""
    most = np.float32(255 - zero_point)
    largest = np.where(np.isnan(x), np.float32(0), np.abs(x)).max(1, keepdims=True)
    with np.errstate(all="ignore"):
        inverse = np.where(largest >= np.float32(1e-30), most / largest, np.float32(0))
        steps = np.rint(np.clip(x * inverse, np.float32(-zero_point), most))
        levels = np.where(np.isnan(steps), 0, steps + zero_point).astype(np.uint8)
    return Quantized(levels, (largest / most)[:, 0])


@dataclass
class DenseLayer:
    """x W^T + b for 8-bit x: weights (N, K), scales and biases (N,)."""

    weights: Weights
    scales: Floats
    biases: Floats
    zero_point: int

    def values(self, x: Quantized) -> Floats:
        """Return the exact result for rows (M, K), with one rounding for each operation on floats."""
        sums = (x.levels.astype(np.int64) - self.zero_point) @ self.weights.astype(np.int64).T
        value: Floats = sums.astype(np.int32).astype(np.float32) * x.scales[:, None] * self.scales + self.biases
        return value


def _weights_begin(num_heads: int) -> int:
    """Return `CacheShape::weights_begin` of the first head."""
    return -(-num_heads // 16) * 16


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

    def quantize(self, x: Floats, zero_point: int = ZERO) -> Quantized:
        """Return the levels of (M, width). What is beyond a row's width must not matter."""
        rows, width = x.shape
        full, to = padded(x, 16, 1e30), _Room(rows, width)
        self._table.quantize(full.ctypes.data, full.shape[1], rows, width, zero_point, to.fields)
        return to.found()

    def norm(self, x: Floats, gain: Floats, bias: Floats, epsilon: float, kind: str) -> tuple[Floats, Quantized]:
        """Return what (M, width) is normalized to, and its levels: the same if only one of them is asked for."""
        rows, width = x.shape
        full = padded(x, 16, 1e30)
        gain, bias = padded(gain, 16), padded(bias, 16)
        norm = _Norm(gain.ctypes.data, bias.ctypes.data, width, epsilon, NORMS.index(kind))

        def run(normed: Floats | None, to: _Room | None) -> None:
            address, stride = (None, 0) if normed is None else (normed.ctypes.data, normed.shape[1])
            fields = _Levels() if to is None else to.fields
            self._table.norm(norm, full.ctypes.data, full.shape[1], rows, address, stride, fields)

        normed, to, only = padded(np.zeros_like(x), 16), _Room(rows, width), _Room(rows, width)
        run(normed, to)
        run(None, only)
        run(full, None)  # in place
        np.testing.assert_array_equal(full[:, :width], normed[:, :width])
        np.testing.assert_array_equal(only.found().levels, to.found().levels)
        np.testing.assert_array_equal(only.found().scales, to.found().scales)
        return normed[:, :width], to.found()

    def dense(
        self, layer: DenseLayer, x: Quantized, before: Floats | None = None, activation: str | None = None,
        into: str = "add",
    ) -> Floats:  # fmt: skip
        """Return the layer's result for (M, K), activated, or what it makes of `before` if there is that."""
        dense, inputs, alive = self._dense(layer, x)
        rows, outputs = len(x.levels), len(layer.weights)
        y = padded(np.full((rows, outputs), np.nan, np.float32) if before is None else before, 64)
        run = self._table.dense if activation is None else self._table.dense_activated
        how = INTO.index("set" if before is None else into) if activation is None else ACTIVATIONS.index(activation)
        run(dense, inputs, rows, how, y.ctypes.data, y.shape[1])
        del alive
        return y[:, :outputs]

    def dense_arg_max(self, layer: DenseLayer, x: Quantized) -> tuple[Indices, Floats]:
        """Return the column of each row's largest result, and that result."""
        dense, inputs, alive = self._dense(layer, x)
        rows = len(x.levels)
        best, value = np.full(rows, -1, np.int32), np.zeros(rows, np.float32)
        self._table.dense_arg_max(dense, inputs, rows, best.ctypes.data, value.ctypes.data)
        del alive
        return best, value

    def dense_columns(self, layer: DenseLayer, x: Quantized, ids: Indices) -> Floats:
        """Return some columns (n,) of the result for one row (1, K)."""
        dense, inputs, alive = self._dense(layer, x)
        weights = aligned(padded(layer.weights, 64).astype(np.int8))
        sums = layer.weights.astype(np.int32).sum(axis=1, dtype=np.int32)
        columns = _Columns(weights.ctypes.data, weights.shape[1], sums.ctypes.data)
        y = np.full(len(ids) + 1, 77, np.float32)
        self._table.dense_columns(
            dense, columns, inputs.levels, float(x.scales[0]), ids.ctypes.data, len(ids), y.ctypes.data
        )
        assert y[-1] == 77
        del alive
        return y[:-1]

    def append(self, keys: Floats, values: Floats, position: int, layer: Bits) -> None:
        """Write keys and values, each (H, D), to `position` of a layer (blocks, H, 2, 16 * padded D) of bfloat16."""
        shape = _CacheShape(layer.shape[1], keys.shape[1], layer.shape[3] // 16)
        self._table.append(shape, keys.ctypes.data, values.ctypes.data, position, layer.ctypes.data)

    def attend(
        self, queries: Floats, scale: float, cache: Bits, num_tokens: int, history: Indices | None,
        bias: Floats | None = None,
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Return the attention (Q, H, D) of queries to (rows, blocks, H, 2, 16 * padded D), and weights (Q, H, T).

        `history` (Q, T) says in which row; without, the tokens are those of the first row. `bias` (H, T + Q - 1) is
        added to scores: its last T columns to those of the first query, those one before to those of the next.
        """
        count, num_heads, head_size = queries.shape
        shape = _CacheShape(num_heads, head_size, cache.shape[4] // 16)
        room = padded(queries.reshape(count, -1), 64, 77).astype(np.float32)  # in place
        room = np.concatenate([room, np.full_like(room[:, :64], 77)], 1)
        begin, size = _weights_begin(num_heads), -(-num_tokens // 16) * 16
        scratch: Floats = np.full((count, begin + num_heads * size), np.nan, np.float32)
        slots = None if history is None else history.ctypes.data
        # Lanes beyond the tokens are readable, and do not matter.
        biases = (
            np.zeros((0, 0), np.float32) if bias is None else np.pad(bias, ((0, 0), (0, 16)), constant_values=np.nan)
        )
        first = None if bias is None else biases[:, count - 1 :].ctypes.data
        self._table.attend(
            shape,
            _Queries(room.ctypes.data, room.shape[1], count),
            scale,
            _ScoreBias(first, biases.shape[1], -1),
            _CachedTokens(cache.ctypes.data, num_tokens, slots, num_tokens, cache[0].size, 0),
            scratch.ctypes.data,
        )
        width = num_heads * head_size
        assert np.all(room[:, width:] == 77)
        weights = scratch[:, begin:].reshape(count, num_heads, size)[..., :num_tokens]
        shares: Floats = (weights / scratch[:, :num_heads, None]).astype(np.float32)
        return room[:, :width].reshape(queries.shape), shares

    def recur(self, candidate: Floats, gate: Floats, before: Floats | None) -> tuple[Floats, Floats]:
        """Return the output and the state (d,) after a token."""
        width = len(candidate)
        projected = padded(np.concatenate([candidate, gate]), 64, 77.0)
        past = None if before is None else padded(before, 16, 77.0)
        state = np.zeros(-(-width // 16) * 16, np.float32)
        self._table.recur(projected.ctypes.data, None if past is None else past.ctypes.data, width, state.ctypes.data)
        np.testing.assert_array_equal(projected[width : 2 * width], gate)
        return projected[:width], state[:width]

    def embed(self, packed: Weights, token: int, scale: float, position: Floats) -> Floats:
        """Return a token's embedding."""
        x = np.full(len(position) + 16, 77, np.float32)
        width = len(position)
        self._table.embed(packed.ctypes.data, token, scale, position.ctypes.data, width, x.ctypes.data)
        assert np.all(x[width:] == 77)
        return x[:width]

    def is_finite(self, x: Floats) -> bool:
        """Return whether all are finite."""
        return bool(self._table.is_finite(x.ctypes.data, x.size))

    def log_sum(self, x: Floats) -> tuple[np.float32, np.float32]:
        """Return the largest and the sum of exp(x - largest)."""
        largest, total = np.zeros(1, np.float32), np.zeros(1, np.float32)
        self._table.log_sum(x.ctypes.data, x.size, largest.ctypes.data, total.ctypes.data)
        return largest[0], total[0]

    def top(self, x: Floats, num_wanted: int, split: int = 0) -> tuple[Indices, Floats]:
        """Return the indices of the largest values and these, found first before and then from `split` on."""
        indices, values = np.full(64, -1, np.int32), np.full(64, np.nan, np.float32)
        found = 0
        for first, part in ((0, x[:split]), (split, x[split:])):
            found = self._table.top(
                part.ctypes.data, part.size, first, num_wanted, found, indices.ctypes.data, values.ctypes.data
            )
        assert np.all(indices[found:] == -1)
        return indices[:found], values[:found]

    def _dense(self, layer: DenseLayer, x: Quantized) -> tuple[_Dense, _Levels, Any]:
        (outputs, inputs), packed = layer.weights.shape, aligned(pack(layer.weights))
        scales, biases = padded(layer.scales, 64), padded(layer.biases, 64)
        offsets = np.zeros(len(scales), np.int32)
        order = np.zeros((packed.shape[0], 4, 1 + packed.shape[1] // 2), np.uint16)
        dense = _Dense(
            inputs, outputs, packed.shape[1], packed.shape[0], packed.ctypes.data, None, None, scales.ctypes.data,
            biases.ctypes.data, layer.zero_point,
        )  # fmt: skip
        self._table.prepare(dense, offsets.ctypes.data, order.ctypes.data)
        assert dense.offsets == offsets.ctypes.data
        room = _Room(*x.levels.shape)
        room.levels[...] = padded(x.levels, 64, 255)
        room.scales[...] = x.scales
        return dense, room.fields, (packed, scales, biases, offsets, order, room)


class _Room:
    """Memory for rows in 8 bits."""

    def __init__(self, rows: int, width: int) -> None:
        self.levels, self.scales = padded(np.zeros((rows, width), np.uint8), 64), np.full(rows, np.nan, np.float32)
        self.fields = _Levels(self.levels.ctypes.data, self.levels.shape[1], self.scales.ctypes.data)
        self._width = width

    def found(self) -> Quantized:
        return Quantized(self.levels[:, : self._width], self.scales)


def aligned(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that begins at a multiple of 64 bytes."""
    memory = np.empty(values.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy
