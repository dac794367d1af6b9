"""Compile `kernels/src` into one shared library, with the C++ compiler of this machine or with zig's.

It needs nothing but the standard library. Only what changed is compiled: objects are kept in `build/kernels`, named by
a hash of their source, all headers, the flags and the compiler's version.
"""

import argparse
import filecmp
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

KERNELS = Path(__file__).resolve().parent
ROOT = KERNELS.parent
LIBRARY = "libdragoman_kernels.so"
IN_PLACE = ROOT / "service" / "kernels"  # where the service looks for it

ZIG = "ziglang==0.17.1"  # a C++ compiler from the package index
ZIG_GLIBC = "2.28"  # the oldest that ONNX Runtime's wheels run on

ZIG_DEFINES = (
    "_LIBCPP_BUILDING_LIBRARY", "_LIBCXXABI_BUILDING_LIBRARY", "LIBCXX_BUILDING_LIBCXXABI",
    "LIBCXXABI_NON_DEMANGLING_TERMINATE",
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
        "neon_dot.cpp": ("-march=armv8.2-a+dotprod",),
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
            raise BuildError(f"the kernels are made for Linux, not for {sys.platform}")
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
        static = ("-lunwind",) if self.is_zig else ("-static-libstdc++", "-static-libgcc")
        return (*static, "-Wl,--gc-sections", "-Wl,-z,defs", "-Wl,-z,relro", "-Wl,-z,now", "-s")


def zig(target: Target) -> tuple[str, ...]:
    """Return zig's command, which never compiles for the CPU that it runs on."""
    return (sys.executable, "-m", "ziglang", "c++", "-target", f"{target.architecture}-linux-gnu.{ZIG_GLIBC}")


def zig_runtime_flags() -> tuple[str, ...]:
    """Return the flags with which zig's C++ library is compiled."""
    found = importlib.util.find_spec("ziglang")
    root = Path(found.origin).parent / "lib" if found and found.origin else Path()
    folders = (root, root / "libcxxabi" / "include", root / "libcxxabi" / "src", root / "libcxx" / "src")
    return ("-std=c++23", "-w", *(f"-D{name}" for name in ZIG_DEFINES), *(f"-I{folder}" for folder in folders))


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
        BuildError: There is none; says what to install.
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
    raise BuildError(
        f"no C++17 compiler for {target.architecture}: install g++ 11, clang++ 12 or `pip install {ZIG}`"
        f" ({'; '.join(reasons)})"
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


class Build:
    """The objects and the library of one compiler and one set of options, kept in a folder."""

    def __init__(self, compiler: Compiler, target: Target, folder: Path, sanitize: bool = False) -> None:
        self._compiler = compiler
        self._target = target
        self._folder = folder
        self._flags = [*compiler.common, *(SANITIZERS if sanitize else ())]
        self._link = ["-shared", "-Wl,--version-script=exports.map", *(SANITIZERS if sanitize else compiler.link)]

    def library(self, sources: Path) -> tuple[Path, str]:
        """Return the library of all sources in a folder, and the compiler's warnings.

        Raises:
            BuildError: Something does not compile or link; what the compiler wrote is on the standard error stream.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        headers = digest(*(path.read_bytes() for path in sorted(sources.rglob("*.h"))))
        found = [(path, self._target.flags(path.name)) for path in sorted(sources.rglob("*.cpp"))]
        jobs = [(path, flags) for path, flags in found if flags is not None]
        if not jobs:
            raise BuildError(f"{sources} has no sources")
        if self._compiler.is_zig:
            jobs.insert(0, (KERNELS / "zig" / "runtime.cpp", zig_runtime_flags()))
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            objects = list(pool.map(lambda job: self._object(*job, os.path.relpath(sources, KERNELS), headers), jobs))
        library = self._linked(objects)
        for path in self._folder.iterdir():
            if path.with_suffix("") not in {made.with_suffix("") for made in (*objects, library)}:
                path.unlink(missing_ok=True)
        return library, "".join(path.with_suffix(".log").read_text(encoding="utf-8") for path in (*objects, library))

    def _object(self, source: Path, flags: tuple[str, ...], folder: str, headers: str) -> Path:
        arguments = [*self._flags, *flags, "-c", os.path.relpath(source, KERNELS), "-I", folder]
        return self._made(source.stem, ".o", arguments, headers, digest(source.read_bytes()))

    def _linked(self, objects: list[Path]) -> Path:
        arguments = [*map(str, objects), *self._link]
        if self._compiler.is_zig:
            try:
                return self._made("library", ".so", [*arguments, "-nostdlib++"], exports())
            except BuildError as error:
                if "std::" not in str(error):
                    raise
                print("kernels/build.py: linking zig's whole C++ library, which takes over a minute", file=sys.stderr)
                arguments.pop(0)
        return self._made("library", ".so", arguments, exports())

    def _made(self, name: str, suffix: str, arguments: list[str], *contents: str) -> Path:
        """Return what the compiler makes of its arguments, made before if neither they nor the contents changed."""
        key = digest(self._compiler.version, *self._compiler.command, *arguments, *contents)
        made = self._folder / f"{name}-{key}{suffix}"
        if not made.exists():
            with tempfile.TemporaryDirectory(dir=self._folder.parent) as folder:
                output, log = Path(folder, f"output{suffix}"), Path(folder, "log")
                run([*self._compiler.command, *arguments, "-o", str(output)], log)
                log.replace(made.with_suffix(".log"))
                output.replace(made)
        return made


def digest(*parts: str | bytes) -> str:
    """Return a short hash of the parts."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()[:16]


def exports() -> bytes:
    """Return the list of the symbols that the library exports."""
    return (KERNELS / "exports.map").read_bytes()


def build(
    output: Path = IN_PLACE,
    *,
    wanted: str = "",
    triplet: str = "",
    sanitize: bool = False,
    strict: bool = False,
    sources: Path = KERNELS / "src",
    objects: Path = ROOT / "build" / "kernels",
) -> Path:
    """Compile what changed, write the library into the folder `output`, and return its path.

    Args:
        output: Where the library goes; it is made if it is missing.
        wanted: A compiler's command, or `zig`; by default the first that works.
        triplet: The system to compile for, as in `aarch64-linux-gnu`; by default this one.
        sanitize: With AddressSanitizer and UndefinedBehaviorSanitizer.
        strict: Reject warnings.
        sources: The folder of the sources.
        objects: The folder of what is compiled before.

    Raises:
        BuildError: There is no compiler, or it failed.
    """
    target = Target.of(triplet)
    compiler = find_compiler(target, wanted)
    kind = digest(*compiler.command, compiler.version, target.architecture, str(sanitize))
    made, warnings = Build(compiler, target, objects / kind, sanitize).library(sources)
    print(warnings, end="", file=sys.stderr)
    if strict and warnings:
        raise BuildError("the compiler warns")
    library = output / LIBRARY
    output.mkdir(parents=True, exist_ok=True)
    if not library.exists() or not filecmp.cmp(made, library, shallow=False):
        with tempfile.TemporaryDirectory(dir=output) as folder:
            shutil.copy(made, folder)
            Path(folder, made.name).replace(library)  # a server may have the old one open
    library.touch()
    return library


def is_current(library: Path = IN_PLACE / LIBRARY) -> bool:
    """Return whether a library is newer than all that it is made of."""
    if not library.exists():
        return False
    made = library.stat().st_mtime
    return all(path.stat().st_mtime <= made for path in KERNELS.rglob("*") if "__pycache__" not in path.parts)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Compile the kernels.")
    parser.add_argument("--output", type=Path, help="folder of the library; default: service/kernels")
    parser.add_argument("--compiler", default="", help="g++, clang++, zig or a command; default: CXX, or what is there")
    parser.add_argument("--target", default="", help="another system, as in aarch64-linux-gnu")
    parser.add_argument("--sanitize", action="store_true", help="with AddressSanitizer and UndefinedBehaviorSanitizer")
    parser.add_argument("--strict", action="store_true", help="reject warnings")
    options = parser.parse_args()
    variant = "-".join(filter(None, ("kernels", options.target, "sanitized" if options.sanitize else "")))
    output = options.output or (IN_PLACE if variant == "kernels" else ROOT / "build" / variant)
    try:
        print(
            build(
                output,
                wanted=options.compiler,
                triplet=options.target,
                sanitize=options.sanitize,
                strict=options.strict,
            )
        )
    except BuildError as error:
        sys.exit(f"kernels/build.py: {error}")


if __name__ == "__main__":
    main()
