"""The library of CPU operators that fused graphs are made of: where it is, and which instruction set it uses here."""

import ctypes
import functools
import os
from dataclasses import dataclass
from pathlib import Path

from service.bundle.errors import BundleError, one_line
from service.engine.runtime.session import check_operators

CHOICE = "DRAGOMAN_KERNELS"  # the instruction set to use, such as "portable"; the library reads it too
PATH = "DRAGOMAN_KERNELS_LIBRARY"

_LIBRARY = Path(__file__).parents[2] / "kernels" / "libdragoman_kernels.so"
_INSTRUCTION_SETS = ("avx512-vnni", "avx-vnni", "avx2", "neon-dot", "portable")  # of `CHOICE`


class KernelsUnavailable(BundleError):
    """The library can't be used here, without which an int8 bundle can't run; the message says why."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """A library that works here."""

    path: Path
    instruction_set: str  # such as "avx512-vnni"


def find_kernels() -> Kernels:
    return _load(library_path(), os.environ.get(CHOICE, ""))


def library_path() -> Path:
    return Path(os.environ.get(PATH) or _LIBRARY)


@functools.cache
def _load(path: Path, choice: str) -> Kernels:
    if not path.is_file():
        raise KernelsUnavailable(f"{path} is missing; build it with 'make serve'")
    try:
        find = ctypes.CDLL(str(path)).dragoman_compute
    except (OSError, AttributeError) as error:
        raise KernelsUnavailable(f"{path} can't be loaded: {error}") from error
    find.argtypes, find.restype = [ctypes.c_char_p], ctypes.POINTER(ctypes.c_char_p)  # a table that begins with a name
    table = find(choice.encode())
    if not table:
        allowed = ", ".join(name for name in _INSTRUCTION_SETS if find(name.encode()))
        raise KernelsUnavailable(f"{CHOICE} is {choice!r}; allowed on this CPU: {allowed}")
    try:
        check_operators(path)
    except Exception as error:  # ONNX Runtime's errors have no common base of their own
        raise KernelsUnavailable(f"{path} is not accepted by ONNX Runtime: {one_line(error)}") from error
    return Kernels(path, table[0].decode())
