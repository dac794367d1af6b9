"""Where the graphs of a bundle say that their weights are."""

from collections.abc import Iterable
from pathlib import Path

import onnx

from export.graphs.weights_file import WEIGHTS


def check_stored_once(directory: Path, graphs: Iterable[str]) -> int:
    """Check that all that graphs of these names refer to is aligned, and overlaps only if equal; return its bytes."""
    ranges = set()
    for name in graphs:
        for tensor in onnx.load(directory / name, load_external_data=False).graph.initializer:
            said = {entry.key: entry.value for entry in tensor.external_data}
            if said:
                assert said["location"] == WEIGHTS
                ranges.add((int(said["offset"]), int(said["length"])))
    assert all(offset % 64 == 0 for offset, _ in ranges)
    ends = [offset + length for offset, length in sorted(ranges)]
    assert all(end <= begin for end, (begin, _) in zip(ends, sorted(ranges)[1:], strict=False))
    assert ends[-1] == (directory / WEIGHTS).stat().st_size
    return sum(length for _, length in ranges)
