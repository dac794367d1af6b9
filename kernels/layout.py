"""Writes `src/search/layout.h`, the structures that the search shares with Python, from the table in
`service/bundle/search_layout.py`: `python -m kernels.layout`, whenever that changed."""

import enum
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from service.bundle.search_layout import CONSTANTS, ENUMERATIONS, STRUCTURES, Constant, Structure
from service.domain.options import OPTIONS, ROW_OPTIONS

HEADER = Path(__file__).parent / "src" / "search" / "layout.h"

_TYPES = {"int32": ("int32_t", 4), "int64": ("int64_t", 8), "uint64": ("uint64_t", 8), "float32": ("float", 4)}
_BEGINNING = """\
// Written by `python -m kernels.layout` from service/bundle/search_layout.py: change that.
#pragma once

#include <cstdint>

namespace dragoman {
"""


def header() -> str:
    """Return the text of the header."""
    parts = [_BEGINNING, "".join(_constant(each) for each in CONSTANTS)]
    parts += [_enumeration(each) for each in ENUMERATIONS]
    parts += ["".join(_structure(each)) for each in STRUCTURES]
    parts += [_options()]
    return "\n".join((*parts, "} // namespace dragoman\n"))


def _constant(constant: Constant) -> str:
    return f"constexpr int {constant.name} = {constant.value};" + _comment(constant.meaning)


def _enumeration(kind: type[enum.IntEnum]) -> str:
    names = [f"  k{each.name.title().replace('_', '')} = {each.value},\n" for each in kind]
    return f"// {kind.__doc__}\nenum {kind.__name__} : int32_t {{\n{''.join(names)}}};\n"


def _structure(structure: Structure) -> Iterator[str]:
    yield "".join(f"// {line}\n" for line in textwrap.wrap(structure.meaning, 117))
    yield f"struct {structure.name} {{\n"
    size = 0
    for name, kind, meaning, of in structure.fields:
        type_name, num_bytes = _TYPES[kind]
        length, array = (of.value, of.name) if isinstance(of, Constant) else (of, str(of))
        size += num_bytes * length
        yield f"  {type_name} {name}{f'[{array}]' if length > 1 else ''};" + _comment(meaning)
    if size % max(_TYPES[kind][1] for _, kind, *_ in structure.fields):
        raise ValueError(f"{structure.name} has {size} bytes, which C++ pads; add a field `reserved`, and pack it too")
    yield f"}};\nstatic_assert(sizeof({structure.name}) == {size});\n"


def _options() -> str:
    """Return the ranges of the options in a row; where it depends on the model, the largest number is allowed."""
    ranges = []
    for name in ROW_OPTIONS:
        option = OPTIONS[name]
        number = {int: "{:d}", float: "{:.1f}f"}[option.kind].format
        assert option.low is not None
        high = "INT32_MAX" if option.high is None else number(option.high)
        ranges.append(f"  X({name}, {number(option.low)}, {high})")
    lines = ["#define DRAGOMAN_OPTIONS(X)", *ranges]
    return "// The options of a row, with the least and the largest that is allowed.\n" + " \\\n".join(lines) + "\n"


def _comment(meaning: str) -> str:
    return f" // {re.sub('`', '', meaning)}\n" if meaning else "\n"


if __name__ == "__main__":
    HEADER.write_text(header(), encoding="utf-8")
