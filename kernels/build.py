"""Compile `kernels/src` into one shared library, with the C++ compiler of this machine or with zig's.

It needs nothing but the standard library. Only what changed is compiled: objects are kept in `build/kernels`, named by
a hash of their source, all headers, the flags and the compiler's version.
"""

import argparse
import filecmp
import hashlib
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernels.compilers import (
    KERNELS,
    ROOT,
    SANITIZERS,
    BuildError,
    Compiler,
    NoCompiler,
    Target,
    find_compiler,
    run,
    zig_runtime_flags,
)

LIBRARY = "libdragoman_kernels.so"
IN_PLACE = ROOT / "service" / "kernels"  # where the service looks for it
NO_COMPILER = 3  # the exit status


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
            raise BuildError(f"{sources} contains no .cpp files for {self._target.architecture}")
        folder = os.path.relpath(sources, KERNELS)
        if self._compiler.is_zig:
            jobs.insert(0, (KERNELS / "zig" / "runtime.cpp", zig_runtime_flags()))
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            objects = list(pool.map(lambda job: self._object(job[0], job[1], folder, headers), jobs))
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
                if "undefined symbol" not in str(error):
                    raise
                print("kernels/build.py: linking zig's whole C++ library, which takes over a minute", file=sys.stderr)
                arguments.pop(0)
        return self._made("library", ".so", arguments, exports())

    def _made(self, name: str, suffix: str, arguments: list[str], *contents: str | bytes) -> Path:
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
    own = objects / ("sanitized" if sanitize else "") / kind  # apart: what they define differs
    made, warnings = Build(compiler, target, own, sanitize).library(sources)
    print(warnings, end="", file=sys.stderr)
    if strict and warnings:
        raise BuildError("the compiler gave warnings, which --strict rejects")
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
    parser = argparse.ArgumentParser(description="Compile the kernels. Exits with 3 if no compiler works.")
    parser.add_argument("--output", type=Path, help="folder for the library; default: service/kernels")
    parser.add_argument(
        "--compiler", default="", help="g++, clang++, zig or a command; default: CXX, or the first that works"
    )
    parser.add_argument(
        "--target", default="", help="system to compile for, such as aarch64-linux-gnu; default: this one"
    )
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
        print(f"kernels/build.py: {error}", file=sys.stderr)
        sys.exit(NO_COMPILER if isinstance(error, NoCompiler) else 1)


if __name__ == "__main__":
    main()
