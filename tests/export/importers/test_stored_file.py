"""Files of strangers' checkpoints: what they unpack to, ask for, or are, does not decide what it takes to read them."""

import gzip
import io
import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zstandard

from export.importers.numpy_archive import read_arrays
from export.importers.pickled_file import load_pickle
from export.importers.stored_file import opened_zip, read
from tests.patience import patient

_SIZE = 64 * 2**20
_ZEROS = bytes(2**20)


def _deflated(path: Path, size: int, name: str = "W.npy", method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive, archive.open(name, "w", force_zip64=True) as member:
        for _ in range(size // len(_ZEROS)):
            member.write(_ZEROS)


def _gzipped(path: Path, size: int) -> None:
    with gzip.open(path, "wb") as file:
        for _ in range(size // len(_ZEROS)):
            file.write(_ZEROS)


def _zstandard(path: Path, size: int) -> None:
    with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as writer:
        for _ in range(size // len(_ZEROS)):
            writer.write(_ZEROS)


def _unzip(path: Path) -> Any:
    with opened_zip(path) as archive:
        return archive.read(archive.infolist()[0])


_BOMBS: dict[str, tuple[str, Callable[[Path, int], None], Callable[[Path], Any]]] = {
    "gzip": ("lex.bin.gz", _gzipped, lambda path: read(path, 2**33)),
    "zstandard": ("lex.bin.zst", _zstandard, lambda path: read(path, 2**33)),
    "zip": ("a.argosmodel", _deflated, _unzip),
    "npz": ("model.npz", _deflated, lambda path: list(read_arrays(read(path, 2**33)))),
    "torch": ("pytorch_model.bin", lambda path, size: _deflated(path, size, "archive/data.pkl"), load_pickle),
    "bzip2": ("b.argosmodel", lambda path, size: _deflated(path, size, method=zipfile.ZIP_BZIP2), _unzip),
    "lzma": ("c.argosmodel", lambda path, size: _deflated(path, size, method=zipfile.ZIP_LZMA), _unzip),
}


@pytest.mark.parametrize("kind", _BOMBS)
def test_zeros_are_not_unpacked(kind: str, tmp_path: Path) -> None:
    name, write, load = _BOMBS[kind]
    path = tmp_path / name
    write(path, _SIZE)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"allowed: |unpacks to more than") as caught:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < _SIZE / 2
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)


def test_what_shrinks_as_models_do_is_read(tmp_path: Path) -> None:
    content = b"".join(b"piece%d: %d\n" % (index, index) for index in range(30_000))
    for path, packed in (
        (tmp_path / "a.gz", gzip.compress(content)),
        (tmp_path / "a.zst", zstandard.compress(content)),
    ):
        path.write_bytes(packed)
        assert read(path) == content
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", content)
    assert _unzip(tmp_path / "a.zip") == content


def test_arrays_are_numpys() -> None:
    random = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {
        "W": random.normal(size=(3, 5)).astype(np.float32),
        "F": np.asfortranarray(random.normal(size=(4, 2)).astype(np.float16)),
        "big-endian": random.normal(size=6).astype(">f8"),
        "special:model.yml": np.frombuffer(b"a: 1\0", np.int8),
        "one": np.array(3.0),
        "none": np.zeros((0, 4)),
        "flags": np.array([True, False]),
    }
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, **arrays)  # type: ignore[arg-type]
        found = dict(read_arrays(file.getvalue()))
        assert found.keys() == arrays.keys()
        for name, expected in arrays.items():
            assert found[name].dtype == expected.dtype
            np.testing.assert_array_equal(found[name], expected)


def _npy(shape: str, descr: str = "'<f4'", data: bytes = b"") -> bytes:
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_npy(f"({2**33},)"), "needs 34359738368 bytes, it has 0"),
        (_npy(f"({2**59}, {2**59})"), "needs .* bytes, it has 0"),
        (_npy("(-1, 4)", data=bytes(16)), "a head that is not NumPy's"),
        (_npy(f"({10**4000},)"), "a head that is not NumPy's"),
        (_npy("(1,)" * 3000), "a head that is not NumPy's"),
        (_npy("(" * 5000), "a head that is not NumPy's"),
        (_npy("(3,)", data=bytes(13)), "needs 12 bytes, it has 13"),
        (_npy(f"({'1, ' * 9})", data=bytes(4)), "9 dimensions; allowed: 8"),
        (_npy("(1,)", "'|O'", pickle.dumps(1)), "a head that is not NumPy's"),
        (_npy("(1,)", "'|O8'", pickle.dumps(1)), "holds O8, expected numbers"),
        (_npy("(1,)", "[('a', '<f4')]", bytes(4)), "a head that is not NumPy's"),
        (_npy("(1,)", "'<f16'", bytes(16)), "holds f16, expected numbers"),
        (_npy("(1,)", "'<c8'", bytes(8)), "holds c8, expected numbers"),
        (_npy("(1,)", "'<U1'", bytes(4)), "holds U1, expected numbers"),
        (b"\x93NUMPY\1\0\xff\xff{", "a head that is not NumPy's"),
        (b"\x93NUMPY\2\0\xff\xff\xff\xff{", "a head that is not NumPy's"),
        (b"\x93NUMPY", "it is not an archive of NumPy arrays"),
        (b"", "it is not an archive of NumPy arrays"),
    ],
)
def test_a_head_that_claims_anything_is_refused(content: bytes, message: str) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("W.npy", content)
    with pytest.raises(ValueError, match=message) as caught:
        list(read_arrays(file.getvalue()))
    assert len(str(caught.value)) < 500


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_a_zip_has_twice_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for _ in range(2):
            archive.writestr("W.npy", _npy("(1,)", data=bytes(4)))
    with pytest.raises(ValueError, match=r"it has 'W\.npy' more than once"):
        list(read_arrays(file.getvalue()))


def test_what_torch_saves_is_read(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(1000, 1000)}, tmp_path / "w.bin")  # zeros, but not compressed
    assert load_pickle(tmp_path / "w.bin")["w"].shape == (1000, 1000)


@pytest.mark.timeout(patient(20))
@pytest.mark.parametrize("load", [read, load_pickle, _unzip])
def test_other_than_files_are_not_waited_for(load: Callable[[Path], Any], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match=f"it is a {path.name}, not a file"):
            load(path)
    with pytest.raises(ValueError, match=r"missing|No such file"):
        load(tmp_path / "nothing")
