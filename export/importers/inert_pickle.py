"""Reads pickles without running anything: objects of all classes become records of what they hold."""

import io
import pickle
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from export.importers import stored_file
from service.bundle.regular_file import open_regular

_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C  # of torch.save before torch 1.6: `torch.serialization.MAGIC_NUMBER`
_DATA_SUFFIX = "/data.pkl"  # of the pickle in a file of torch.save
_NUM_BEFORE = 3  # pickles before the object in such a file from before torch 1.6: magic, protocol, system
_UNBOUNDED = (pickle.BYTEARRAY8, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER)  # the first reserves whatever it is told


class Record(dict[Any, Any]):
    """Stands for an object of any class, or the result of any function: its items and attributes, or its `state`.

    Arguments of constructors and functions are forgotten.
    """

    state: Any = ()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.update(state)
        else:
            self.state = state


class _Unpickler(pickle._Unpickler):  # the one in Python: C's reserves memory by numbers in the file
    dispatch: ClassVar[dict[int, Any]] = {
        code: read for code, read in pickle._Unpickler.dispatch.items() if bytes([code]) not in _UNBOUNDED
    }

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.asked = set[str]()

    def find_class(self, module: str, name: str) -> Any:
        module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))  # of Python 2
        self.asked.add(f"{module}.{name}")
        return Record

    def persistent_load(self, pid: Any) -> Any:
        return None  # a tensor


def read_inert(path: Path) -> Any:
    """Return the object in a file of `pickle.dump` or `torch.save`; an object of a class is a `Record`."""
    return _read(path)[0]


def names_asked(path: Path) -> set[str]:
    """Return what such a file asks to import, as "module.name"."""
    return _read(path)[1]


def _read(path: Path) -> tuple[Any, set[str]]:
    try:
        with _pickle_in(path) as file:
            reader = _Unpickler(file)
            loaded = reader.load()
            if loaded == _MAGIC_NUMBER:
                *_, loaded = (reader.load() for _ in range(_NUM_BEFORE))
            return loaded, reader.asked
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(f"it is not a pickle, or it is damaged ({stored_file.reason(error)})") from error


@contextmanager
def _pickle_in(path: Path) -> Iterator[BinaryIO]:
    """Open the pickle in a file; tensors' numbers, which lie beside or behind it, are not read."""
    with open_regular(path) as file:
        if file.read(4) != b"PK\x03\x04":
            file.seek(0)
            yield file
            return
    with stored_file.opened_zip(path) as archive:
        found = [each for each in archive.infolist() if each.filename.endswith(_DATA_SUFFIX)]
        if len(found) != 1:
            raise ValueError("it is a zip file that torch.save did not write")
        yield io.BytesIO(stored_file.unpacked(archive, found[0]))
