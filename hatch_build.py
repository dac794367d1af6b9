"""Build hook of the wheel: compiles the kernels, which also happens where the project is installed from its sources.

`DRAGOMAN_BUILD_KERNELS` says what to do about them: `require` (the default) fails where they cannot be compiled,
`never` needs neither `kernels/` nor a compiler, and the path of a library that `kernels/build.py` made before, perhaps
for another architecture, puts that one into the wheel.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SETTING = "DRAGOMAN_BUILD_KERNELS"
REQUIRE, NEVER = "require", "never"
NAME = "libdragoman_kernels.so"
ARCHITECTURES = {
    21: "ppc64le",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
}  # by the number in an ELF file's header, from elf.h

if os.environ.get(SETTING) in (None, "", REQUIRE):
    sys.path.insert(0, str(Path(__file__).parent))
    from kernels.build import build, is_current
    from kernels.compilers import ZIG, BuildError, Target, find_compiler


class KernelsHook(BuildHookInterface[Any]):
    """Puts the library into `service/kernels`, from where it goes into the wheel, and tags the wheel."""

    def dependencies(self) -> list[str]:
        """Return zig's C++ compiler if this machine needs one and has none."""
        if setting() != REQUIRE or sys.platform != "linux" or is_current():
            return []
        try:
            find_compiler(Target.of())
        except BuildError:
            return [ZIG]
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile what changed."""
        how = setting()
        if how == NEVER:
            return
        library = Path(self.root, "service", "kernels", NAME) if how == REQUIRE else Path(how)
        if how == REQUIRE and not is_current():
            build()
        build_data["force_include"][str(library)] = f"service/kernels/{NAME}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(library.read_bytes())}"


def setting() -> str:
    """Return what to do about the kernels.

    Raises:
        ValueError: The variable has another value.
    """
    value = os.environ.get(SETTING) or REQUIRE
    if value not in (REQUIRE, NEVER) and not Path(value).is_file():
        raise ValueError(f"{SETTING} is {value!r}; allowed: {REQUIRE}, {NEVER} or the path of a library")
    return value


def platform_tag(library: bytes) -> str:
    """Return the tag of the systems that have the CPU and the C library which a shared library needs.

    Raises:
        ValueError: It is none for Linux, or for a CPU that has no name here.
    """
    machine = int.from_bytes(library[18:20], "little")
    if library[:4] != b"\x7fELF" or machine not in ARCHITECTURES:
        raise ValueError(f"the kernels' library is not for Linux on one of {', '.join(ARCHITECTURES.values())}")
    needed = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)\b", library)]
    return f"manylinux_2_{max([17, *needed])}_{ARCHITECTURES[machine]}"
