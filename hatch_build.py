"""Build hook of the wheel: compiles the kernels, which also happens where the project is installed from its sources.

`DRAGOMAN_BUILD_KERNELS` says what to do about them: `require` (the default) fails where they cannot be compiled,
`never` needs neither `kernels/` nor a compiler.
"""

import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SETTING = "DRAGOMAN_BUILD_KERNELS"
REQUIRE, NEVER = "require", "never"

if os.environ.get(SETTING) != NEVER:
    sys.path.insert(0, str(Path(__file__).parent))
    from kernels.build import IN_PLACE, LIBRARY, build, is_current
    from kernels.compilers import ZIG, BuildError, Target, find_compiler


class KernelsHook(BuildHookInterface[Any]):
    """Puts the library into `service/kernels`, from where it goes into the wheel, and tags the wheel."""

    def dependencies(self) -> list[str]:
        """Return zig's C++ compiler if this machine needs one and has none."""
        if setting() == NEVER or sys.platform != "linux" or is_current():
            return []
        try:
            find_compiler(Target.of())
        except BuildError:
            return [ZIG]
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile what changed."""
        if setting() == NEVER:
            return
        library = IN_PLACE / LIBRARY
        if not is_current():
            build()
        build_data["artifacts"].append(f"/{library.relative_to(self.root)}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(library.read_bytes())}"


def setting() -> str:
    """Return what to do about the kernels.

    Raises:
        ValueError: The variable has another value.
    """
    value = os.environ.get(SETTING) or REQUIRE
    if value not in (REQUIRE, NEVER):
        raise ValueError(f"{SETTING}={value}; must be {REQUIRE} or {NEVER}")
    return value


def platform_tag(library: bytes) -> str:
    """Return the tag of the systems that have the C library which a shared library needs."""
    needed = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)\b", library)]
    return f"manylinux_2_{max([17, *needed])}_{platform.machine()}"
