"""All instruction sets compute the same bits, on CPUs that this machine is not and that qemu emulates."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.compilers import KERNELS, Compiler, Target, find_compiler, run
from tests.patience import patient
from tests.tools import tool

DIGEST = Path(__file__).with_name("digest.cpp")
AARCH64 = "aarch64-linux-gnu"
AARCH64_LIBRARIES = Path("/usr/aarch64-linux-gnu")  # of Debian's libc6-arm64-cross
WITHOUT_LIBRARY = ("-fno-exceptions", "-fno-threadsafe-statics")


def digests(program: Path, *emulator: str) -> dict[str, str]:
    """Return what the program prints, by instruction set."""
    told = subprocess.run(
        [*emulator, program], capture_output=True, text=True, check=True, timeout=patient(60)
    ).stdout  # fmt: skip
    return dict(line.split() for line in told.splitlines())


def compiled(compiler: Compiler, target: Target, folder: Path, *sources: Path) -> list[str]:
    """Compile sources for their instruction sets, needing no C++ library; return the objects."""
    made = []
    for source in sources:
        flags = target.flags(source.name)
        if flags is not None:
            made.append(str(folder / f"{source.stem}.o"))
            command = [*compiler.command, *compiler.common, *WITHOUT_LIBRARY, *flags, f"-I{KERNELS / 'src'}"]
            run([*command, "-c", str(source), "-o", made[-1]])
    return made


@pytest.fixture(scope="module")
def program(kernels_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program for x86-64, with the library that serves."""
    if os.uname().machine != "x86_64":
        pytest.skip("the other CPUs of this architecture are not known here")
    folder = tmp_path_factory.mktemp("digest")
    target = Target.of()
    compiler = find_compiler(target)
    built = folder / "digest"
    objects = compiled(compiler, target, folder, DIGEST)
    own_library = [*compiler.link, *(["-nostdlib++"] if compiler.is_zig else [])]
    search = f"-Wl,-rpath,{kernels_library.parent}"
    run([*compiler.command, *objects, str(kernels_library), search, *own_library, "-o", str(built)])
    return built


@pytest.fixture(scope="module")
def expected(program: Path) -> str:
    """Return the digest of the portable code on this CPU."""
    return digests(program)["portable"]


def test_this_cpu(program: Path, expected: str) -> None:
    assert set(digests(program).values()) == {expected}


@pytest.mark.parametrize(("cpu", "sets"), [("Nehalem", {"portable"}), ("Haswell", {"avx2", "portable"})])
def test_older_cpus(program: Path, expected: str, cpu: str, sets: set[str]) -> None:
    found = digests(program, tool("qemu-x86_64", "qemu-user"), "-cpu", cpu)
    assert found == dict.fromkeys(sets, expected)


def test_aarch64(expected: str, tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    emulator = tool("qemu-aarch64", "qemu-user")
    loader = Path(tool(str(AARCH64_LIBRARIES / "lib" / "ld-linux-aarch64.so.1"), "libc6-arm64-cross"))
    target = Target.of(AARCH64)
    compiler = find_compiler(target, "zig")
    objects = compiled(compiler, target, tmp_path, DIGEST, *sorted((KERNELS / "src" / "compute").glob("*.cpp")))
    program = tmp_path / "digest"
    # zig's c++ would compile parts of its own before it links.
    linker = [sys.executable, "-m", "ziglang", "ld.lld", "-e", "start", "--dynamic-linker", f"/lib/{loader.name}"]
    run([*linker, *objects, str(loader.with_name("libc.so.6")), "-o", str(program)])
    emulated = (emulator, "-L", str(loader.parents[1]))
    assert digests(program, *emulated, "-cpu", "max") == dict.fromkeys(["neon-dot", "portable"], expected)
    assert digests(program, *emulated, "-cpu", "cortex-a53") == {"portable": expected}
