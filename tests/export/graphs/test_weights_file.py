"""The graphs of a bundle share one file of weights, in which everything is once."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from export.graphs.tracing import trace_encoder
from export.graphs.weights_file import INLINE_BYTES, WEIGHTS, WeightsFile, has_large_weights
from service.bundle.manifest import Manifest
from tests.export.stored_weights import check_stored_once
from tests.export.variants import Variant

GRAPHS = ("encoder.onnx", "decoder_step.onnx", "alignment.onnx")


def test_what_several_graphs_use_is_stored_once(variants: Callable[[str], Variant]) -> None:
    """The embedding, which is the projection, too; and of a decoder's layers all that alignments need."""
    # Of smaller weights, torch would compute the parts that alignments need; with other heads, some would be padding.
    variant = variants("learned")
    model, folder = variant.model, variant.folder
    weights = sum(parameter.nbytes for parameter in model.parameters())
    assert 0.95 * weights < check_stored_once(folder, GRAPHS) < 1.05 * weights
    assert sum((folder / name).stat().st_size for name in GRAPHS) < 100_000


def test_tracing_again_gives_the_same_file(variants: Callable[[str], Variant], tmp_path: Path) -> None:
    variant = variants("learned")
    with WeightsFile(tmp_path) as file:
        trace_encoder(variant.model, tmp_path / "encoder.onnx", file)
    assert (tmp_path / "encoder.onnx").read_bytes() == (variant.folder / "encoder.onnx").read_bytes()


def test_tables_of_both_sides_are_stored_once(exported: tuple[Path, Manifest]) -> None:
    """The embedding, which is the projection, and positions."""
    stored: dict[str, set[tuple[str, ...]]] = {"tokens": set(), "positions": set()}
    for name in GRAPHS:
        for tensor in onnx.load(exported[0] / name, load_external_data=False).graph.initializer:
            place = tuple(entry.value for entry in tensor.external_data)
            if tensor.name in ("embedding.tokens.weight", "projection.weight"):
                stored["tokens"].add(place)
            elif tensor.name == "embedding.positions":
                stored["positions"].add(place)
    assert {table: len(places) for table, places in stored.items()} == {"tokens": 1, "positions": 1}


def test_equal_constants_are_one_and_small_ones_are_inline(tmp_path: Path) -> None:
    values = np.arange(INLINE_BYTES // 4, dtype=np.float32)
    with WeightsFile(tmp_path) as file:
        first, small, other, again, reshaped = (
            file.add(name, array)
            for name, array in (
                ("first", values),
                ("small", values[:-1]),
                ("other", values + 1),
                ("again", values.copy()),
                ("reshaped", values.reshape(2, -1)),
            )
        )
    assert first is again
    assert numpy_helper.to_array(small).tolist() == values[:-1].tolist()
    assert [tensor.data_location for tensor in (small, other)] == [onnx.TensorProto.DEFAULT, onnx.TensorProto.EXTERNAL]
    for tensor, expected in ((first, values), (other, values + 1), (reshaped, values.reshape(2, -1))):
        np.testing.assert_array_equal(numpy_helper.to_array(tensor, str(tmp_path)), expected)
    assert (tmp_path / WEIGHTS).stat().st_size == 3 * INLINE_BYTES


def test_gigabytes_are_large(tmp_path: Path) -> None:
    assert not has_large_weights(tmp_path)
    for size, is_large in ((1024**3, False), (1024**3 + 1, True)):
        with (tmp_path / WEIGHTS).open("wb") as file:
            file.truncate(size)  # a hole, which takes no space
        assert has_large_weights(tmp_path) == is_large
