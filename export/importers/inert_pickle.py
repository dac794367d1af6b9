"""Reads pickled vocabularies without running anything: objects of all classes become records of what they hold."""

import io
import pickle
from pathlib import Path
from typing import Any, ClassVar

import torch

from export.importers import stored_file

_DATA_SUFFIX = "/data.pkl"  # of the pickle in a file of torch.save
_NUM_BEFORE = 3  # pickles before the object in such a file from before torch 1.6: magic, protocol, system
_UNBOUNDED = (pickle.BYTEARRAY8, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER)  # the first reserves whatever it is told


class Record(dict[Any, Any]):
    """What stands for an object of any class, and for what any function returns: its items and attributes.

    `state` is what it holds if that is neither. What a constructor or a function is called with is forgotten.
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

    def find_class(self, module: str, name: str) -> Any:
        return Record

    def persistent_load(self, pid: Any) -> Any:
        return None  # a tensor


def read_inert(path: Path) -> Any:
    """Return the object in a file of `pickle.dump` or `torch.save`; an object of a class is a `Record`."""
    data = stored_file.read(path)
    if data.startswith(b"PK\x03\x04"):
        with stored_file.opened_zip(data) as archive:
            found = [each for each in archive.infolist() if each.filename.endswith(_DATA_SUFFIX)]
            if len(found) != 1:
                raise ValueError("it is a zip, and not of torch.save")
            data = bytes(stored_file.unpacked(archive, found[0]))
    reader = _Unpickler(io.BytesIO(data))
    try:
        loaded = reader.load()
        if loaded == torch.serialization.MAGIC_NUMBER:
            *_, loaded = (reader.load() for _ in range(_NUM_BEFORE))
        return loaded
    except Exception as error:  # a damaged pickle can raise anything
        raise ValueError(f"it is no pickle, or damaged ({stored_file.reason(error)})") from error
