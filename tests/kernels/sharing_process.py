"""A process that shares packed weights: says what it decodes and which files it maps, and stays until told to end."""

import sys
from pathlib import Path

from tests.kernels.fused_graphs import SHAPES
from tests.kernels.mixed_batch import Answer, decode, mixed_sequences
from tests.kernels.operators import Operators

SHAPE = SHAPES["as shipped"]
SOURCES = [(5, 6, 2), (7, 8, 9, 2), (10, 2), (11, 12, 13, 14, 2)]


def answers(operators: Operators) -> list[Answer]:
    """Return what is decoded of a few sequences of different kinds."""
    return decode(operators, mixed_sequences(SHAPE, SOURCES))


def mapped_inodes(folder: Path) -> list[int]:
    """Return the inodes of the folder's files that this process maps."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return sorted({int(fields[4]) for fields in map(str.split, lines) if fields[-1].startswith(f"{folder}/")})


def main() -> None:
    """Load, decode, tell and wait."""
    library, graphs, shared = map(Path, sys.argv[1:])
    sizes = SHAPE.num_decoder_layers, SHAPE.num_heads, SHAPE.head_size
    operators = Operators(library, graphs / "encoder.onnx", graphs / "decoder.onnx", sizes, shared_weights=shared)
    print(answers(operators), flush=True)
    print(mapped_inodes(shared), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
