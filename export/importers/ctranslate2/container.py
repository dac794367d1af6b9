"""Reads CTranslate2's `model.bin`: a specification's name and revision, variables by name, and aliases of them.

The layout is that of `Model::load` (src/models/model.cc) and of `ModelSpec._serialize` (python/ctranslate2/specs).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy import typing as npt

from export.importers.byte_reader import ByteReader

VERSIONS = range(2, 7)
_FIRST_WITH_ALIASES, _FIRST_WITH_TYPES = 3, 4
_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")  # by the numbers of include/ctranslate2/types.h
_BYTES = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "float16": 2, "bfloat16": 2}
_TYPE_OF_BYTES = {4: "float32", 2: "int16", 1: "int8"}  # before files stated types
_INTEGERS = ("int8", "int16", "int32")
_INT16_SCALE = 1000.0  # of files that have none
_MOST_VARIABLES, _MOST_DIMS = 100_000, 8

Floats = npt.NDArray[Any]  # of float32, float16 or bfloat16


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """Numbers as they are stored; `kind` is one of `_TYPES`."""

    kind: str
    shape: tuple[int, ...]
    data: memoryview

    def array(self) -> npt.NDArray[Any]:
        """Return the numbers, without a copy where they are aligned; bfloat16 is ml_dtypes'."""
        dtype = np.dtype(ml_dtypes.bfloat16 if self.kind == "bfloat16" else self.kind)
        stored = np.frombuffer(self.data, dtype).reshape(self.shape)
        return np.require(stored, requirements=["C", "A"])

    def same(self, other: "Variable") -> bool:
        return self is other or (self.kind, self.shape, self.data) == (other.kind, other.shape, other.data)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The content of a file; an alias is the same `Variable`."""

    version: int
    spec: str
    revision: int
    variables: Mapping[str, Variable]

    def floats(self, name: str) -> Floats:
        """Return a variable as it is; integers times the step of their row or, of 16 bits, of all."""
        if name not in self.variables:
            raise ValueError(f"{name} is missing")
        variable = self.variables[name]
        if variable.kind not in _INTEGERS:
            return variable.array()
        scale = self.variables.get(f"{name}_scale")
        if scale is None and variable.kind != "int16":
            raise ValueError(f"{name} holds {variable.kind} and has no {name}_scale")
        scales = np.array(_INT16_SCALE, np.float32) if scale is None else scale.array().astype(np.float32)
        if scales.ndim and scales.shape != variable.shape[:1]:
            raise ValueError(f"{name}_scale has shape {scales.shape}, {name} {variable.shape}")
        if not bool((np.isfinite(scales) & (scales > 0)).all()):
            raise ValueError(f"{name}_scale has numbers that are not positive")
        per_row = scales.reshape(scales.shape + (1,) * (len(variable.shape) - scales.ndim)) if scales.ndim else scales
        with np.errstate(over="ignore"):  # what is infinite is found with all other weights
            values: Floats = np.divide(variable.array(), per_row, dtype=np.float32)
        return values

    def number(self, name: str) -> float | None:
        variable = self.variables.get(name)
        if variable is None:
            return None
        if math.prod(variable.shape) != 1:
            raise ValueError(f"{name} has shape {variable.shape}, expected one number")
        return float(variable.array().reshape(()))

    def text(self, name: str) -> str | None:
        variable = self.variables.get(name)
        try:
            return None if variable is None else bytes(variable.data).decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} is not UTF-8 text") from error


def read_container(data: bytes | memoryview) -> ModelFile:
    """Read a file's content; numbers are views of it."""
    reader = ByteReader(data)
    (version,) = reader.numbers("I")
    if version not in VERSIONS:
        raise ValueError(
            f"it begins with version {version}; CTranslate2's versions {VERSIONS[0]} to {VERSIONS[-1]} are read"
        )
    spec = _name(reader)
    revision, count = reader.numbers("II")
    if count > _MOST_VARIABLES:
        raise ValueError(f"it claims to hold {count} variables; allowed: {_MOST_VARIABLES}")
    variables: dict[str, Variable] = {}
    for _ in range(count):
        name = _new_name(reader, variables)
        variables[name] = _variable(reader, name, version)
    if version >= _FIRST_WITH_ALIASES:
        (num_aliases,) = reader.numbers("I")
        for _ in range(min(num_aliases, _MOST_VARIABLES)):
            alias, name = _new_name(reader, variables), _name(reader)
            if name not in variables:
                raise ValueError(f"{alias[:100]} stands for {name[:100]}, which it lacks")
            variables[alias] = variables[name]
            if f"{name}_scale" in variables:
                variables.setdefault(f"{alias}_scale", variables[f"{name}_scale"])
    return ModelFile(version, spec, revision, variables)


def _name(reader: ByteReader) -> str:
    (length,) = reader.numbers("H")
    return reader.name(length)


def _new_name(reader: ByteReader, variables: Mapping[str, Variable]) -> str:
    name = _name(reader)
    if name in variables:
        raise ValueError(f"it has {name[:100]!r} more than once")
    return name


def _variable(reader: ByteReader, name: str, version: int) -> Variable:
    (rank,) = reader.numbers("B")
    if rank > _MOST_DIMS:
        raise ValueError(f"{name[:100]!r} has {rank} dimensions; allowed: {_MOST_DIMS}")
    shape = reader.numbers(f"{rank}I")
    number, size = reader.numbers("BI")
    if version >= _FIRST_WITH_TYPES:
        kind = _TYPES[number] if number < len(_TYPES) else None
    else:
        kind, size = _TYPE_OF_BYTES.get(number), size * number
    if kind is None:
        raise ValueError(f"{name[:100]!r} is of the unknown type {number}")
    needed = math.prod(shape) * _BYTES[kind]
    if size != needed % 2**32:  # sizes are of 32 bits
        raise ValueError(f"{name[:100]!r} of shape {shape} needs {needed} bytes, it has {size}")
    return Variable(kind, shape, reader.take(needed))
