"""The per-row inputs of a decoder step, in memory that the step graph reads."""

import numpy as np

from service.bundle import graph_io
from service.engine.runtime.session import Array, Buffer, DeviceMemory


class StepInputs:
    """`token_ids`, `lengths` and `source_lengths` of up to `max_slots` rows, in one contiguous block.

    With a `device`, they are copied to its memory in one transfer per step; without, the graph reads host memory.
    """

    def __init__(self, max_slots: int, device: str | None) -> None:
        self._bytes = np.zeros(max_slots * 16, np.uint8)
        self.token_ids = self._bytes[: 8 * max_slots].view(np.int64)
        self.lengths = self._bytes[8 * max_slots : 12 * max_slots].view(np.int32)
        self.source_lengths = self._bytes[12 * max_slots :].view(np.int32)
        self._on_device = None if device is None else DeviceMemory(device, self._bytes.nbytes)

    def send(self) -> None:
        if self._on_device is not None:
            self._on_device.write(self._bytes)

    def buffers(self, num_rows: int) -> dict[str, Buffer]:
        """Return input names and the buffers of their first `num_rows` entries, which stay valid."""
        arrays: dict[str, Array] = {
            graph_io.TOKEN_IDS: self.token_ids,
            graph_io.LENGTHS: self.lengths,
            graph_io.SOURCE_LENGTHS: self.source_lengths,
        }
        if self._on_device is None:
            return {name: Buffer.of(array[:num_rows]) for name, array in arrays.items()}
        start = self._bytes.ctypes.data
        return {
            name: self._on_device.view(array.ctypes.data - start, array.dtype, (num_rows,))
            for name, array in arrays.items()
        }
