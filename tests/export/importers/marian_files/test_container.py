"""Marian's files of weights, whole and damaged."""

import contextlib
import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.importers.marian_files.container import CONFIG, read_model
from tests.export.importers.marian_files import folders
from tests.export.importers.marian_files.folders import DATA, INTGEMM8, Item, container

ALPHAS = (DATA / "model.intgemm.alphas.bin").read_bytes()


def test_a_container_holds_what_the_archive_of_the_same_model_holds() -> None:
    archive = read_model((DATA / "model.npz").read_bytes())
    made = read_model(container([*folders.float_items(folders.arrays()), folders.config_item()]))
    assert made.parameters.keys() == archive.parameters.keys()
    assert made.settings == archive.settings
    for name, values in archive.parameters.items():
        np.testing.assert_array_equal(made.parameters[name], values, name)


@pytest.mark.parametrize(
    ("name", "in_8_bits"), [("model.intgemm8.bin", r"_W.?$"), ("model.intgemm.alphas.bin", r"_W.?$|Wemb")]
)
def test_weights_in_8_bits_are_near_those_in_float(name: str, in_8_bits: str) -> None:
    exact, stored = (read_model((DATA / each).read_bytes()) for each in ("model.npz", name))
    assert stored.parameters.keys() == exact.parameters.keys()
    for each, values in exact.parameters.items():
        error = np.abs(stored.parameters[each] - values).max()
        if re.search(in_8_bits, each):
            assert 0 < error <= 0.501 * np.abs(values).max() / 127, each
        else:
            assert error == 0, each


def test_float16_is_read() -> None:
    values = np.arange(6, dtype=np.float16).reshape(2, 3)
    found = read_model(container([("W", 0x0402, (2, 3), values.tobytes()), folders.config_item()]))
    np.testing.assert_array_equal(found.parameters["W"], values.T)


def test_a_pad_of_any_length_is_read() -> None:
    """The head's own padding is as long as it says."""
    whole = container([folders.config_item()])
    start = 16 + 32 + len(CONFIG) + 1 + 4 + 8  # behind an item's head, name and shape, and the length of the padding
    (pad,) = struct.unpack_from("<Q", whole, start - 8)
    longer = whole[: start - 8] + struct.pack("<Q", pad + 17) + bytes(17) + whole[start:]
    assert read_model(longer).settings == folders.settings()


def one(kind: int, shape: tuple[int, ...], data: bytes) -> list[Item]:
    return [("W", kind, shape, data), folders.config_item()]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cut short"),
        (b"x" * 40, "it is not a Marian container"),
        (container([], version=2), "begins with version 2"),
        (container([]), "lacks special:model.yml"),
        (struct.pack("<QQ", 1, 2**40), "claims to hold"),
        (struct.pack("<QQQQQQ", 1, 1, 2**62, 1, 1, 1), "cut short"),
        (container(one(0x12001, (2, 2), bytes(8))), r"'W' holds weights packed for one kind of CPU"),
        (container(one(0x4102, (2, 2), bytes(16))), "16 bits"),
        (container(one(0x7777, (2, 2), bytes(16))), "unknown type 0x7777"),
        (container(one(folders.FLOAT32, (2**20, 2**20), bytes(16))), "needs"),
        (container(one(folders.FLOAT32, (0, 2), bytes(16))), "has the shape"),
        (container(one(folders.FLOAT32, (1,) * 9, bytes(16))), "9 dimensions"),
        (container(one(INTGEMM8, (2, 2, 2), bytes(16))), "expected a matrix"),
        (container(one(INTGEMM8, (64, 64), bytes(16))), "needs 4100 bytes"),
        (container(one(INTGEMM8, (2, 2), bytes(16))), "levels per unit"),
        (container(one(INTGEMM8, (2, 2), bytes(4) + struct.pack("<f", np.nan))), "levels per unit"),
        (container([*folders.float_items({"W": np.ones((2, 2))}) * 2, folders.config_item()]), "more than once"),
        (container([(CONFIG, 0x0101, (5,), b"a: [\0")]), "it is not supported YAML"),
        (container([(CONFIG, 0x0101, (3,), b"- a\0")]), "no settings"),
        (container([(CONFIG, 0x0101, (3,), b"\xff\xfe\0")]), "it is not supported YAML"),
        (container([("a\nb", folders.FLOAT32, (1,), bytes(4))]), "names an item"),
        (b"PK\3\4" + bytes(50), "not a zip file"),
        ((DATA / "model.npz").read_bytes()[:5000], "not a zip file"),
    ],
)
def test_what_can_t_be_read_is_named(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_model(data)


@given(st.data())
def test_damaged_files_are_value_errors(data: st.DataObject) -> None:
    """Cut anywhere, or with some bytes changed: refused, or read as another model."""
    damaged = bytearray(ALPHAS[: data.draw(st.integers(0, len(ALPHAS)))] if data.draw(st.booleans()) else ALPHAS)
    heads = min(len(damaged), 9000)  # where numbers tell where others are
    for _ in range(data.draw(st.integers(0, 4))):
        if heads:
            place = data.draw(st.integers(0, heads - 1))
            damaged[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        read_model(bytes(damaged))
