"""Weights are in memory once, as the file had them; what isn't there is refused in one line that names the graph."""

import random
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from numpy import typing as npt
from onnx import TensorProto, helper

from service.bundle.errors import BundleError
from service.engine.runtime.session import GraphSession, SessionConfig
from service.engine.runtime.weights import Weights
from tests.fuzz.properties import check_message

ONE_THREAD = SessionConfig(intra_op_threads=1)
TABLE = (np.arange(32 * 64) % 7).astype(np.float32).reshape(32, 64)  # small, so that products are exact
DTYPES = (np.float32, np.uint8, np.int8, np.int32, np.int64, np.float16)


def outside(name: str, array: npt.NDArray[Any], offset: int = 0) -> TensorProto:
    """Describe an array that is in a file."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    tensor = TensorProto(name=name, data_type=kind, dims=array.shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "weights.bin"), ("offset", offset), ("length", array.nbytes)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def save(path: Path, *tensors: TensorProto) -> Path:
    """Write a graph that looks up rows of the first constant, and multiplies them by it."""
    name = tensors[0].name
    nodes = [
        helper.make_node("Gather", [name, "ids"], ["rows"]),
        helper.make_node("Gemm", ["rows", name], ["products"], transB=1),
    ]
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["N"])]
    outputs = [
        helper.make_tensor_value_info(each, TensorProto.FLOAT, ["N", width])
        for each, width in (("rows", 64), ("products", 32))
    ]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(tensors))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return a folder with two graphs of one table."""
    (tmp_path / "weights.bin").write_bytes(bytes(64) + TABLE.tobytes())
    for name in ("first", "second"):
        save(tmp_path / f"{name}.onnx", outside(f"{name}.table", TABLE, 64))
    return tmp_path


def run(session: GraphSession) -> tuple[npt.NDArray[np.float32], ...]:
    """Return rows 3 and 1, and their products."""
    rows, products = np.zeros((2, 64), np.float32), np.zeros((2, 32), np.float32)
    session.run(session.bind({"ids": np.array([3, 1])}, {"rows": rows, "products": products}))
    return rows, products


def opened(path: Path, weights: Weights) -> GraphSession:
    return GraphSession(path, ONE_THREAD, ["ids"], ["rows", "products"], weights=weights.of(path.name))


@pytest.mark.parametrize("apart", [False, True])
def test_two_graphs_share_the_memory(bundle: Path, apart: bool) -> None:
    weights = Weights(bundle, apart=apart)
    first, second = weights.of("first.onnx")["first.table"], weights.of("second.onnx")["second.table"]
    np.testing.assert_array_equal(first, TABLE)
    assert first.ctypes.data == second.ctypes.data
    assert first.ctypes.data % 64 == 0


@pytest.mark.parametrize("apart", [False, True])
def test_whoever_changes_the_file_changes_nothing(bundle: Path, apart: bool) -> None:
    weights = Weights(bundle, apart=apart)
    sessions = [opened(bundle / name, weights) for name in ("first.onnx", "second.onnx")]
    del weights
    (bundle / "weights.bin").write_bytes(b"\xff" * 64)  # shorter, too: a mapped file would end the process
    for session in sessions:
        rows, products = run(session)
        np.testing.assert_array_equal(rows, TABLE[[3, 1]])
        np.testing.assert_array_equal(products, TABLE[[3, 1]] @ TABLE.T)


def test_constants_apart_are_free_when_no_session_reads_them(bundle: Path) -> None:
    weights = Weights(bundle, apart=True)
    constants = weights.of("first.onnx")
    constant = weakref.ref(constants["first.table"])
    session = GraphSession(bundle / "first.onnx", ONE_THREAD, ["ids"], ["rows", "products"], weights=constants)
    del constants
    assert constant() is not None, "rows are looked up in it"
    np.testing.assert_array_equal(run(session)[0], TABLE[[3, 1]])
    del session
    assert constant() is None


def test_a_session_lets_go_what_it_has_packed(bundle: Path) -> None:
    packed, read = (outside(name, TABLE, 64) for name in ("packed", "read"))
    model = onnx.load(save(bundle / "both.onnx", read, packed), load_external_data=False)
    model.graph.node[1].input[1] = "packed"
    (bundle / "both.onnx").write_bytes(model.SerializeToString())
    constants = Weights(bundle, apart=True).of("both.onnx")
    constants["packed"] = constants["packed"].copy()
    references = {name: weakref.ref(array) for name, array in constants.items()}
    session = GraphSession(bundle / "both.onnx", ONE_THREAD, ["ids"], ["rows", "products"], weights=constants)
    constants.clear()
    assert {name: reference() is not None for name, reference in references.items()} == {"read": True, "packed": False}
    np.testing.assert_array_equal(run(session)[1], TABLE[[3, 1]] @ TABLE.T)


@given(st.data())
def test_any_array_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.getbasetemp()
    shapes = some.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    any_array = st.sampled_from(DTYPES).flatmap(lambda dtype: some.arrays(dtype, shapes))
    arrays = data.draw(st.lists(any_array, min_size=1, max_size=5))
    contents, tensors = b"", []
    for number, array in enumerate(arrays):
        contents += bytes(-len(contents) % 64)
        tensors.append(outside(f"t{number}", array, len(contents)))
        contents += array.tobytes()
    (folder / "weights.bin").write_bytes(contents)
    save(folder / "any.onnx", *tensors, helper.make_tensor("inline", TensorProto.FLOAT, [1], [1.0]))
    for apart in (False, True):
        found = Weights(folder, apart=apart).of("any.onnx")
        assert list(found) == [tensor.name for tensor in tensors]
        for array, given_array in zip(arrays, found.values(), strict=True):
            assert (given_array.dtype, given_array.shape) == (array.dtype, array.shape)
            assert given_array.tobytes() == array.tobytes()


def test_dimensions_may_be_packed(bundle: Path) -> None:
    tensor = outside("table", TABLE, 64)
    tensor.ClearField("dims")
    graph = b"\x2a" + _sized(tensor.SerializeToString() + b"\x0a\x02\x20\x40")  # field 5: a constant; in it, field 1
    (bundle / "packed.onnx").write_bytes(b"\x3a" + _sized(graph))  # field 7: the graph
    np.testing.assert_array_equal(Weights(bundle).of("packed.onnx")["table"], TABLE)


def _sized(message: bytes) -> bytes:
    return bytes([len(message) & 0x7F | 0x80, len(message) >> 7]) + message


def said(key: str, value: str | None) -> Callable[[TensorProto, Path], object]:
    """Return a change of what a tensor says about its place."""

    def change(tensor: TensorProto, folder: Path) -> None:
        entries = {entry.key: entry.value for entry in tensor.external_data} | {key: value}
        tensor.ClearField("external_data")
        for each, text in entries.items():
            if text is not None:
                tensor.external_data.add(key=each, value=text)

    return change


def dims(*sizes: int) -> Callable[[TensorProto, Path], object]:
    def change(tensor: TensorProto, folder: Path) -> None:
        tensor.ClearField("dims")
        tensor.dims.extend(sizes)

    return change


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (said("offset", "65"), "8192 bytes at 65 .* of 8256 in weights.bin"),
        (said("offset", str(2**70)), "8192 bytes at"),
        (said("offset", "-64"), "8192 bytes at -64"),
        (said("offset", "zero"), "invalid literal"),
        (said("offset", None), "'offset'"),
        (said("length", "8191"), "8191 said"),
        (said("length", None), "'length'"),
        (said("location", "other.bin"), "No such file"),
        (said("location", ""), "Is a directory|bytes at"),
        (said("location", None), "'location'"),
        (said("location", "a\0b"), "null"),
        (dims(33, 64), "8448 bytes at 64"),
        (dims(2**32, 2**32), "bytes at 64"),  # 0 bytes in 64 bits
        (dims(2**62, 4, 2**62, 2**62), "bytes at 64"),
        (dims(-32, -64), "bytes at 64"),
        (dims(*[2**62] * 1000), "digits"),
        (lambda tensor, folder: setattr(tensor, "data_type", TensorProto.DOUBLE), "KeyError"),
        (lambda tensor, folder: tensor.ClearField("data_type"), "IndexError"),
        (lambda tensor, folder: (folder / "weights.bin").unlink(), "No such file"),
        (lambda tensor, folder: (folder / "weights.bin").write_bytes(bytes(8255)), "of 8255 in weights.bin"),
        (lambda tensor, folder: (folder / "weights.bin").write_bytes(b""), "of 0 in weights.bin"),
    ],
)
def test_what_is_not_there_is_refused(
    bundle: Path, apart: bool, spoil: Callable[[TensorProto, Path], object], message: str
) -> None:
    tensor = outside("table", TABLE, 64)
    spoil(tensor, bundle)
    save(bundle / "first.onnx", tensor)
    with pytest.raises(BundleError, match=message) as raised:
        Weights(bundle, apart=apart).of("first.onnx")
    assert str(raised.value).startswith(f"{bundle}/first.onnx has weights that can't be read (")
    check_message(raised.value)


def test_a_graph_that_is_not_there_is_refused(bundle: Path) -> None:
    with pytest.raises(BundleError, match=r"third\.onnx has weights that can't be read \(FileNotFoundError"):
        Weights(bundle).of("third.onnx")


def test_damaged_graphs_give_arrays_within_the_file_or_one_line(bundle: Path) -> None:
    rng = random.Random(0)
    intact = (bundle / "first.onnx").read_bytes()
    refused = 0
    for _ in range(200):
        data = bytearray(intact)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (bundle / "first.onnx").write_bytes(data[: rng.randint(1, 2 * len(data))])
        try:
            for array in Weights(bundle).of("first.onnx").values():
                assert array.nbytes <= TABLE.nbytes + 64
                array.tobytes()
        except BundleError as error:
            check_message(error)
            refused += 1
    assert 20 < refused < 180
