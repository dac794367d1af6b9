"""The C++ compilers that may compile the kernels, and their flags."""

import importlib.util
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KERNELS = Path(__file__).resolve().parent
ROOT = KERNELS.parent

ZIG = "ziglang==0.17.1"  # a C++ compiler from the package index
ZIG_GLIBC = "2.28"  # the oldest that ONNX Runtime's wheels run on

ZIG_DEFINES = (
    "_LIBCPP_BUILDING_LIBRARY", "_LIBCXXABI_BUILDING_LIBRARY", "LIBCXX_BUILDING_LIBCXXABI",
    "LIBCXXABI_NON_DEMANGLING_TERMINATE", "_LIBCPP_AVAILABILITY_MINIMUM_HEADER_VERSION=99",
)  # fmt: skip

COMMON = (
    "-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-ffunction-sections",
    "-fdata-sections", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra",
)  # fmt: skip
# gcc notes how it passes vectors, and gcc 12 takes values in its own AVX-512 headers for uninitialized.
GCC_ONLY = ("-Wno-psabi", "-Wno-uninitialized", "-Wno-maybe-uninitialized")
SANITIZERS = (
    "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
    "-D_GLIBCXX_ASSERTIONS",
)  # fmt: skip

# Which sources need an instruction set beyond the baseline, per architecture; others leave them out.
INSTRUCTION_SETS: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "avx512_vnni.cpp": ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mfma"),
        "avx_vnni.cpp": ("-mavx2", "-mfma", "-mavxvnni"),
        "avx2.cpp": ("-mavx2", "-mfma"),
    },
    "aarch64": {
        "neon_dot.cpp": ("-mcpu=generic+dotprod",),
    },
}

PROBE = """
#include <stdexcept>
#include <vector>
extern "C" __attribute__((visibility("default"))) int dragoman_compute(int n) {
  try { return std::vector<int>(n).at(n); } catch (const std::out_of_range &) { return n; }
}
"""


class BuildError(Exception):
    """Why there is no library, and what to do, in one line."""


class NoCompiler(BuildError):
    """No compiler works."""


@dataclass(frozen=True)
class Target:
    """What to compile for; `triplet` is empty for this machine."""

    architecture: str
    triplet: str = ""

    @classmethod
    def of(cls, triplet: str = "") -> "Target":
        """Return the target of a name like `aarch64-linux-gnu`, or this machine.

        Raises:
            BuildError: It is not Linux.
        """
        machine = platform.machine()
        if not triplet and sys.platform != "linux":
            raise BuildError(f"the system is {sys.platform}, allowed: linux")
        architecture = triplet.split("-")[0] or machine
        return cls(architecture, "" if architecture == machine and sys.platform == "linux" else triplet)

    def flags(self, source: str) -> tuple[str, ...] | None:
        """Return the flags of a file's instruction set, or None if it belongs to another architecture."""
        for architecture, sources in INSTRUCTION_SETS.items():
            if source in sources:
                return sources[source] if architecture == self.architecture else None
        return ()


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler and what its `--version` says."""

    command: tuple[str, ...]
    version: str

    @property
    def is_zig(self) -> bool:
        """Whether it is clang as zig brings it, with a C++ library that it compiles itself."""
        return "ziglang" in self.command

    @property
    def common(self) -> tuple[str, ...]:
        """The flags of all files."""
        return COMMON + (GCC_ONLY if "Free Software Foundation" in self.version else ())

    @property
    def link(self) -> tuple[str, ...]:
        """The flags of a library that runs where no or another C++ library is installed."""
        # Without -O3, zig would first compile a checker of undefined behaviour for itself.
        static = ("-O3", "-lunwind") if self.is_zig else ("-static-libstdc++", "-static-libgcc")
        return (*static, "-Wl,--gc-sections", "-Wl,-z,defs", "-Wl,-z,relro", "-Wl,-z,now", "-s")


def zig(target: Target) -> tuple[str, ...]:
    """Return zig's command, which never compiles for the CPU that it runs on."""
    return (sys.executable, "-m", "ziglang", "c++", "-target", f"{target.architecture}-linux-gnu.{ZIG_GLIBC}")


def zig_runtime_flags() -> tuple[str, ...]:
    """Return the flags with which zig's C++ library is compiled."""
    found = importlib.util.find_spec("ziglang")
    root = Path(found.origin).parent / "lib" if found and found.origin else Path()
    folders = (root, root / "libcxxabi" / "include", root / "libcxxabi" / "src", root / "libcxx" / "src")
    return ("-std=c++23", "-w", "-Os", *(f"-D{name}" for name in ZIG_DEFINES), *(f"-I{folder}" for folder in folders))


def candidates(target: Target) -> Iterator[tuple[str, ...]]:
    """Yield the commands that may be a C++ compiler for the target, the one of `CXX` alone if that is set."""
    if not target.triplet and os.environ.get("CXX"):
        yield tuple(shlex.split(os.environ["CXX"]))
        return
    yield from ((f"{target.triplet}-g++",),) if target.triplet else (("g++",), ("c++",), ("clang++",))
    yield zig(target)


def find_compiler(target: Target, wanted: str = "") -> Compiler:
    """Return the first compiler that makes a working library, or `wanted` (a command, or `zig`) if it does.

    Raises:
        NoCompiler: There is none; says what to install.
    """
    commands = [zig(target) if wanted == "zig" else tuple(shlex.split(wanted))] if wanted else list(candidates(target))
    reasons = []
    for command in commands:
        try:
            compiler = Compiler(command, run([*command, "--version"]))
            if not compiler.is_zig:  # pinned; and it compiles its C++ library when it links for the first time
                probe(compiler, target)
        except BuildError as error:
            reasons.append(str(error))
        else:
            return compiler
    missing = ("No such file or directory", "No module named ziglang")
    told = [reason for reason in reasons if len(commands) == 1 or not reason.endswith(missing)]
    raise NoCompiler(
        f"no C++17 compiler for {target.architecture}: install g++ 11, clang++ 12 or `pip install {ZIG}`"
        + (f" ({'; '.join(told)})" if told else "")
    )


def probe(compiler: Compiler, target: Target) -> None:
    """Compile a small library with all flags; raise `BuildError` if that fails."""
    sets = {flag for flags in INSTRUCTION_SETS.get(target.architecture, {}).values() for flag in flags}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(PROBE, encoding="utf-8")
        flags = [*compiler.common, *sorted(sets), "-shared", *compiler.link]
        run([*compiler.command, *flags, str(source), "-o", str(Path(folder, "probe.so"))])


def run(command: list[str], log: Path | None = None) -> str:
    """Run a program in `kernels/` and return what it wrote, which `log` keeps if there is one.

    Raises:
        BuildError: It is missing or failed; with its first error.
    """
    cache = str(ROOT / "build" / "zig")
    environment = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache, **os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            cwd=KERNELS,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise BuildError(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()] or [f"status {done.returncode}"]
        if log:
            print(done.stdout, end="", file=sys.stderr)
        raise BuildError(f"{Path(command[0]).name}: {next((line for line in lines if 'rror' in line), lines[-1])}")
    if log:
        log.write_text(done.stdout, encoding="utf-8")
    return done.stdout
