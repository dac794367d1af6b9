"""`model.bin`: all versions and types, aliases, and files that are damaged or claim to be large."""

import contextlib
import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy import typing as npt

from export.importers.ctranslate2.container import VERSIONS, read_container
from tests.export.importers.ctranslate2.model_files import bfloat16, container

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(5, 3)).astype(np.float32)
ARRAYS: dict[str, npt.NDArray[Any]] = {
    "a/weight": ROWS,
    "b/weight": np.array([[1, -127], [3, 4]], np.int8),
    "b/weight_scale": np.array([2.0, 4.0], np.float32),
    "c/weight": np.array([[100, -3]], np.int16),
    "c/weight_scale": np.array(50.0, np.float32),
    "flag": np.array(1, np.int8),
    "name": np.frombuffer("größer".encode(), np.int8),
}
TYPED: dict[str, npt.NDArray[Any]] = {
    "d/weight": ROWS.astype(np.float16),
    "e/weight": bfloat16(np.array([[1.0, -2.5, 0.15625]], np.float32)),
    "number": np.array(-7, np.int32),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_variables_of_all_versions(version: int) -> None:
    arrays = ARRAYS if version < 4 else ARRAYS | TYPED
    aliases = [("x/weight", "b/weight")] if version >= 3 else []
    found = read_container(container(arrays, aliases, version, "SomeSpec", 4))
    assert (found.version, found.spec, found.revision) == (version, "SomeSpec", 4)
    assert np.array_equal(found.floats("a/weight"), ROWS)
    assert found.floats("b/weight").tolist() == [[0.5, -63.5], [0.75, 1.0]]
    assert found.floats("c/weight").tolist() == [[2.0, np.float32(-0.06)]]
    assert (found.number("flag"), found.number("none")) == (1.0, None)
    assert (found.text("name"), found.text("none")) == ("größer", None)
    if aliases:
        assert found.variables["x/weight"] is found.variables["b/weight"]
        assert np.array_equal(found.floats("x/weight"), found.floats("b/weight"))
    if version >= 4:
        assert found.floats("d/weight").dtype == np.float16
        assert found.floats("e/weight").tolist() == [[1.0, -2.5, 0.15625]]
        assert found.number("number") == -7.0


def test_every_cut_is_noticed() -> None:
    data = container(ARRAYS | TYPED, [("x/weight", "a/weight")])
    read_container(data)
    for length in range(len(data)):
        with pytest.raises(ValueError, match="it is cut short"):
            read_container(data[:length])


def test_every_changed_byte_is_refused_or_read() -> None:
    """No other error, and no memory beyond the file's."""
    data = container(ARRAYS | TYPED, [("x/weight", "a/weight")])
    tracemalloc.start()
    try:
        for place in range(len(data)):
            for value in (0, 1, 127, 255):
                changed = bytearray(data)
                changed[place] = value
                with contextlib.suppress(ValueError):
                    found = read_container(bytes(changed))
                    for name in found.variables:
                        found.floats(name)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack("<I", 1), "it begins with version 1; CTranslate2's versions 2 to 6"),
        (struct.pack("<I", 7), "it begins with version 7"),
        (b"PK\x03\x04" + bytes(99), "it begins with version"),
        (container({})[:-8] + struct.pack("<II", 10**9, 0), "it claims to hold 1000000000 variables"),
        (container({"a": ROWS, "b": ROWS}).replace(b"\2\0b\0", b"\2\0a\0"), "'a' more than once"),
        (container({"a": ROWS}, [("a", "a")]), "'a' more than once"),
        (container({"a": ROWS}, [("b", "c")]), "b stands for c, which it lacks"),
        (container({"a\nb": ROWS}), "no name that ends with NUL"),
    ],
)
def test_what_is_wrong(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_container(data)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "a is missing"),
        ({"a": np.ones((2, 2), np.int8)}, "a holds int8 and has no a_scale"),
        ({"a": np.ones((2, 2), np.int8), "a_scale": np.ones(3, np.float32)}, "a_scale has shape"),
        ({"a": np.ones((2, 2), np.int8), "a_scale": np.array([1.0, 0.0], np.float32)}, "numbers that are not positive"),
        (
            {"a": np.ones((2, 2), np.int8), "a_scale": np.array([1.0, np.nan], np.float32)},
            "numbers that are not positive",
        ),
    ],
)
def test_unusable_numbers(arrays: dict[str, npt.NDArray[Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_container(container(arrays)).floats("a")


def test_a_flag_is_one_number_and_a_name_a_text() -> None:
    found = read_container(container({"a": ROWS, "b": np.array([-1], np.int8)}))
    with pytest.raises(ValueError, match=r"a has shape \(5, 3\), expected one number"):
        found.number("a")
    with pytest.raises(ValueError, match="b is not UTF-8 text"):
        found.text("b")
