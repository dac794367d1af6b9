"""Device memory in blocks of equal size, changed from the host in one way only: by copying blocks to blocks."""

from pathlib import Path

import numpy as np
from numpy import typing as npt

from service.bundle.graph_io import WORD_BYTES
from service.engine.runtime.session import Buffer, DeviceMemory, GraphSession, SessionConfig

Indices = npt.NDArray[np.int64]

_GRAPH = Path(__file__).parent / "graphs" / "copy_blocks.onnx"  # written by export.graphs.memory_graphs


def open_copy_graph(config: SessionConfig) -> GraphSession:
    """Open the graph that copies blocks; one session serves all memories of a device."""
    inputs = ["memory", "source_bases", "source_offsets", "target_bases", "target_offsets"]
    return GraphSession(_GRAPH, config, inputs, ["moved"])


class BlockMemory:
    """`num_blocks` blocks of `block_bytes` on a device, initially zero, and one more that stays zero.

    A copy has K rows of M blocks: block `source_bases[k] + source_offsets[m]` goes to `target_bases[k] +
    target_offsets[m]`. Source and target may overlap: everything is read before anything is written. A copy takes one
    transfer of indices and one run of a small graph, which temporarily needs as much memory as it copies.
    """

    def __init__(
        self,
        copy_graph: GraphSession,
        device: str,
        num_blocks: int,
        block_bytes: int,
        *,
        most_rows: int,
        most_offsets: int,
    ) -> None:
        assert block_bytes % WORD_BYTES == 0, f"a block of {block_bytes} bytes"
        self.block_bytes = block_bytes
        self._zero_block = num_blocks
        self._memory = DeviceMemory(device, (num_blocks + 1) * block_bytes)
        self._most_rows, self._most_offsets = most_rows, most_offsets
        self._indices: Indices = np.zeros(2 * (most_rows + most_offsets), np.int64)
        self._device_indices = DeviceMemory(device, self._indices.nbytes)
        self._session = copy_graph
        words = self._memory.view(0, np.int64, (num_blocks + 1, block_bytes // WORD_BYTES))
        self._binding = self._session.bind({"memory": words}, {"moved": words})

    def view(self, block: int, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Buffer:
        return self._memory.view(block * self.block_bytes, dtype, shape)

    def copy(
        self, source_bases: Indices, source_offsets: Indices, target_bases: Indices, target_offsets: Indices
    ) -> None:
        """Copy K rows of M blocks; (K,), (M,), (K,), (M,). Complete on return."""
        num_rows, num_offsets = len(target_bases), len(target_offsets)
        if not num_rows or not num_offsets:
            return
        first_target, first_offset = self._most_rows, 2 * self._most_rows
        last_offset = first_offset + self._most_offsets
        self._indices[:num_rows] = source_bases
        self._indices[first_target : first_target + num_rows] = target_bases
        self._indices[first_offset : first_offset + num_offsets] = source_offsets
        self._indices[last_offset : last_offset + num_offsets] = target_offsets
        self._device_indices.write(self._indices.view(np.uint8))
        self._session.rebind(
            self._binding,
            {
                "source_bases": self._index_view(0, (num_rows, 1)),
                "target_bases": self._index_view(first_target, (num_rows, 1, 1)),
                "source_offsets": self._index_view(first_offset, (1, num_offsets)),
                "target_offsets": self._index_view(last_offset, (1, num_offsets, 1)),
            },
        )
        self._session.run(self._binding)

    def zero(self, bases: Indices, offsets: Indices) -> None:
        self.copy(np.full_like(bases, self._zero_block), np.zeros_like(offsets), bases, offsets)

    def _index_view(self, first: int, shape: tuple[int, ...]) -> Buffer:
        return self._device_indices.view(first * self._indices.itemsize, np.int64, shape)
