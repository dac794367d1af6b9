"""How the kernels are compiled: by which compiler, with which flags, what again, and what the library exports."""

import ctypes
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import compilers
from kernels.build import LIBRARY, NO_COMPILER, build
from kernels.compilers import INSTRUCTION_SETS, KERNELS, ROOT, BuildError, NoCompiler, Target, find_compiler
from kernels.layout import HEADER, header
from tests.patience import patient
from tests.tools import tool

# A compiler that only records what it is asked for. It warns of files that say so, and rejects some.
FAKE = f"""#!{sys.executable}
import json, pathlib, sys
arguments = sys.argv[1:]
if "--version" in arguments:
    sys.exit(print("Fake 1"))
with open(sys.argv[0] + ".log", "a") as log:
    print(json.dumps(arguments), file=log)
texts = [pathlib.Path(each).read_text() for each in arguments if each.endswith(".cpp")]
for text in texts:
    if "warning" in text or "error" in text:
        print("it has an error:" if "error" in text else "a warning")
    if "error" in text:
        sys.exit(1)
pathlib.Path(arguments[arguments.index("-o") + 1]).write_text("".join([*texts, *arguments]))
"""

ENTRIES = """
#include <stdexcept>
#include <string>
#include <vector>
int not_exported(int n) { return std::vector<int>(3).at(n); }
extern "C" __attribute__((visibility("default"))) int also_not_exported(int n) { return n; }
extern "C" __attribute__((visibility("default"))) int RegisterCustomOps(int n) { return not_exported(n); }
extern "C" __attribute__((visibility("default"))) int dragoman_compute(int n) {
  try { return RegisterCustomOps(n); } catch (const std::exception &error) { return std::string(error.what()).size(); }
}
"""


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    return write_program(tmp_path / "fake-c++", FAKE)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return sources of all instruction sets and three that need none."""
    folder = tmp_path / "src"
    for name in ("compute/portable.cpp", "runtime/one.cpp", "runtime/two.cpp", "runtime/header.h"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("// nothing")
    for name in (name for of_one in INSTRUCTION_SETS.values() for name in of_one):
        (folder / "compute" / name).write_text("// nothing")
    return folder


def write_program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def compiled(compiler: Path) -> dict[str, list[str]]:
    """Return the arguments by source file of what was compiled since the last call; the library is under its name."""
    log = Path(f"{compiler}.log")
    runs = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    log.unlink(missing_ok=True)
    named = [([Path(word).name for word in run if word.endswith(".cpp")] or [LIBRARY], run) for run in runs]
    return {names[0]: run for names, run in named if names != ["probe.cpp"]}


def of_tests(tmp_path: Path, compiler: Path, sources: Path, **options: object) -> Path:
    return build(
        tmp_path / "out",
        wanted=str(compiler),
        sources=sources,
        objects=tmp_path / "objects",
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64", "riscv64"])
def test_only_files_of_an_instruction_set_may_use_it(
    tmp_path: Path, fake: Path, sources: Path, architecture: str
) -> None:
    of_tests(tmp_path, fake, sources, triplet=f"{architecture}-linux-gnu")
    commands = compiled(fake)
    own = INSTRUCTION_SETS.get(architecture, {})
    assert set(commands) == {LIBRARY, "portable.cpp", "one.cpp", "two.cpp", *own}
    for name, command in commands.items():
        assert [word for word in command if word.startswith("-m")] == list(own.get(name, ()))
        assert not {"-ffast-math", "-Ofast", "-march=native", "-mcpu=native"} & set(command)
        assert name == LIBRARY or {"-ffp-contract=off", "-fvisibility=hidden"} <= set(command)


def test_only_what_changed_is_compiled(tmp_path: Path, fake: Path, sources: Path) -> None:
    of_tests(tmp_path, fake, sources)
    everything = set(compiled(fake))
    of_tests(tmp_path, fake, sources)
    assert compiled(fake) == {}
    (sources / "runtime" / "one.cpp").write_text("// another")
    library = of_tests(tmp_path, fake, sources)
    assert set(compiled(fake)) == {"one.cpp", LIBRARY}
    assert "one-" in library.read_text()
    (sources / "runtime" / "header.h").write_text("// another")
    of_tests(tmp_path, fake, sources)
    assert set(compiled(fake)) == everything
    assert "two-" in library.read_text()
    (sources / "runtime" / "two.cpp").unlink()
    assert "two-" not in of_tests(tmp_path, fake, sources).read_text()
    assert not list((tmp_path / "objects").rglob("two-*"))
    everything.remove("two.cpp")
    compiled(fake)
    fake.write_text(fake.read_text().replace("Fake 1", "Fake 2"))
    of_tests(tmp_path, fake, sources)
    assert set(compiled(fake)) == everything


def test_warnings_fail_a_strict_build_each_time(tmp_path: Path, fake: Path, sources: Path) -> None:
    (sources / "runtime" / "one.cpp").write_text("// warning")
    of_tests(tmp_path, fake, sources)
    for _ in range(2):
        with pytest.raises(BuildError, match="the compiler gave warnings"):
            of_tests(tmp_path, fake, sources, strict=True)


def test_an_error_is_told_in_one_line_and_keeps_the_library(tmp_path: Path, fake: Path, sources: Path) -> None:
    library = of_tests(tmp_path, fake, sources)
    before = library.read_bytes()
    (sources / "runtime" / "one.cpp").write_text("// error")
    with pytest.raises(BuildError, match=r"^fake-c\+\+: it has an error:$"):
        of_tests(tmp_path, fake, sources)
    assert library.read_bytes() == before
    with pytest.raises(BuildError, match=r"contains no \.cpp files for "):
        of_tests(tmp_path, fake, tmp_path / "nothing")


def test_the_first_compiler_that_works_is_taken(tmp_path: Path, fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    write_program(programs / "g++", f"#!{sys.executable}\nimport sys; sys.exit('g++: error: too old')")
    shutil.copy(fake, programs / "clang++")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("CXX", raising=False)
    assert find_compiler(Target.of()).command == ("clang++",)
    monkeypatch.setenv("CXX", f"{fake} -pipe")
    assert find_compiler(Target.of()).command == (str(fake), "-pipe")
    with pytest.raises(NoCompiler, match="too old"):
        find_compiler(Target.of(), "g++")


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compilers, "zig", lambda target: ("zig-is-missing",))
    with pytest.raises(NoCompiler, match=r"install g\+\+ 11, clang\+\+ 12 or `pip install ziglang==") as told:
        find_compiler(Target.of())
    assert "\n" not in str(told.value)


def test_its_exit_status_tells_a_missing_compiler_from_an_error(tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, ROOT / "kernels" / "build.py", "--output", tmp_path]
    command += ["--compiler", "/nowhere/c++"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=patient(20))
    assert (run.returncode, run.stdout) == (NO_COMPILER, "")
    (line,) = run.stderr.splitlines()
    assert line.startswith("kernels/build.py: no C++17 compiler")


def test_other_systems_have_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(BuildError, match="the system is darwin, allowed: linux"):
        Target.of()


def nm(*arguments: str | Path) -> str:
    command = [tool("nm", "binutils"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=patient(10)).stdout


def exported(library: Path) -> set[str]:
    return {line.split()[0] for line in nm("--dynamic", "--defined-only", "--format=posix", library).splitlines()}


def check_small(library: Path) -> None:
    loaded = ctypes.CDLL(str(library))
    assert loaded.dragoman_compute(2) == 0
    assert loaded.dragoman_compute(3) > 10
    assert exported(library) == {"RegisterCustomOps", "dragoman_compute"}


def test_the_library_exports_its_entries_only_and_brings_the_c_plus_plus_library(tmp_path: Path, compiler: str) -> None:
    (tmp_path / "entries.cpp").write_text(ENTRIES)
    library = of_tests(tmp_path, Path(compiler), tmp_path)
    check_small(library)
    assert b"libstdc++.so" not in library.read_bytes()


@pytest.mark.full
@pytest.mark.timeout(600)
def test_zig_makes_the_same_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed")
    (tmp_path / "entries.cpp").write_text(ENTRIES)
    check_small(of_tests(tmp_path, Path("zig"), tmp_path))
    foreign = of_tests(tmp_path, Path("zig"), KERNELS / "src", triplet="aarch64-linux-gnu")
    assert foreign.read_bytes()[18] == 183  # ELF's e_machine: AArch64
    assert capsys.readouterr().err == "", "zig/runtime.cpp lacks what the kernels use now, so a build takes minutes"


def test_the_kernels_export_their_entries_only(kernels_library: Path) -> None:
    stepper = {f"dragoman_stepper_{name}" for name in ("new", "begin", "advance", "delete")}
    assert exported(kernels_library) == {"RegisterCustomOps", "dragoman_compute", "dragoman_most_repeats", *stepper}


def test_no_function_of_an_instruction_set_may_replace_a_common_one(kernels_library: Path) -> None:
    """The linker keeps one of several equal inline functions: it may not be one that other CPUs can't run."""
    objects = [
        path
        for name in INSTRUCTION_SETS.get(os.uname().machine, {})
        for path in (ROOT / "build" / "kernels").glob(f"*/{Path(name).stem}-*.o")
    ]
    assert objects, kernels_library
    for path in objects:
        names = nm("--demangle", "--defined-only", path).splitlines()
        shared = [line for line in names if line.split()[1] in ("W", "V", "u")]
        assert shared == [], path.name


def test_the_kernels_use_only_what_zig_runtime_cpp_compiles_of_the_c_plus_plus_library(kernels_library: Path) -> None:
    """With anything else, a build by zig takes minutes; `test_zig_makes_the_same_library` tries it."""
    known = {"bad_alloc", "basic_string", "condition_variable", "exception", "invalid_argument", "runtime_error",
             "system_error", "terminate", "thread"}  # fmt: skip
    libraries = (ROOT / "build" / "kernels").glob("*/library-*.so")
    objects = [
        path
        for library in libraries
        if library.read_bytes() == kernels_library.read_bytes()
        for path in library.parent.glob("*.o")
    ]
    assert objects, "the library was compiled elsewhere"
    undefined = nm("--demangle", "--undefined-only", *objects)
    names = re.findall(r"^ +U (?:vtable for |typeinfo for )?std::(?:__cxx11::)?(\w+)", undefined, re.MULTILINE)
    assert {"bad_alloc", "thread"} < set(names)
    assert {name for name in names if not name.startswith("__throw_")} <= known


def test_the_header_is_written_from_the_table_of_today() -> None:
    assert HEADER.read_text(encoding="utf-8") == header(), "run `python -m kernels.layout`"
