"""Packed weights in files that processes share: the same tokens, and nothing in a file is trusted."""

import fcntl
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.kernels.operators import Operators
from tests.kernels.sharing_process import SHAPE, answers, mapped_inodes
from tests.patience import patient
from tests.servers import REPOSITORY

Open = Callable[[Path | None], Operators]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Return a folder for shared weights."""
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    return tmp_path / "graphs"


@pytest.fixture
def open_operators(kernels_library: Path, graphs: Path) -> Open:
    """Return what opens the same graphs, with weights in a folder or without."""
    return lambda folder: Operators.tiny(kernels_library, graphs, SHAPE, shared_weights=folder)


@pytest.fixture
def contents(open_operators: Open, shared: Path) -> dict[Path, bytes]:
    """Return what the files contain; they are gone again."""
    operators = open_operators(shared)
    read = {path: path.read_bytes() for path in shared.iterdir()}
    close(operators)
    assert len(read) == 2
    assert not list(shared.iterdir())
    return read


def close(operators: Operators) -> None:
    """Close the sessions, even if a traceback or a cycle still refers to them."""
    vars(operators).clear()
    gc.collect()


@contextmanager
def in_use(path: Path, data: bytes) -> Iterator[None]:
    """Write a file and hold it as another process would that uses it."""
    path.write_bytes(data)
    path.chmod(0o600)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def flipped(data: bytes) -> bytes:
    """Return the data with a changed byte in its middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1 :]


def test_who_shares_gets_the_same_and_maps_the_same_files(open_operators: Open, shared: Path) -> None:
    alone, first, second = open_operators(None), open_operators(shared), open_operators(shared)
    assert mapped_inodes(shared) == sorted(path.stat().st_ino for path in shared.iterdir())
    assert len(mapped_inodes(shared)) == 2
    expected = answers(alone)
    assert answers(first) == expected
    assert answers(second) == expected
    close(first)
    assert answers(second) == expected
    assert len(list(shared.iterdir())) == 2
    close(second)
    assert not list(shared.iterdir())


def test_files_are_for_this_user_alone(open_operators: Open, shared: Path) -> None:
    operators = open_operators(shared)
    assert {path.stat().st_mode & 0o777 for path in shared.iterdir()} == {0o600}
    close(operators)


def test_the_weights_in_use_are_those_of_the_file(open_operators: Open, shared: Path) -> None:
    """Otherwise the other tests would show nothing."""
    operators = open_operators(shared)
    expected = answers(operators)
    for path in shared.iterdir():
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))
    assert answers(operators) != expected
    close(operators)


@pytest.mark.parametrize(
    "damage", [flipped, lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data + bytes(4096)]
)
def test_a_damaged_file_is_written_again_by_whoever_is_alone_with_it(
    open_operators: Open, shared: Path, contents: dict[Path, bytes], damage: Callable[[bytes], bytes]
) -> None:
    for path, data in contents.items():
        path.write_bytes(damage(data))
        path.chmod(0o600)
    operators = open_operators(shared)
    assert {path: path.read_bytes() for path in shared.iterdir()} == contents
    assert len(mapped_inodes(shared)) == 2
    assert answers(operators) == answers(open_operators(None))
    close(operators)


@pytest.mark.parametrize("damage", [flipped, lambda data: data[: len(data) // 2], lambda data: data + bytes(4096)])
def test_a_damaged_file_that_another_process_uses_is_not_trusted(
    open_operators: Open, shared: Path, contents: dict[Path, bytes], damage: Callable[[bytes], bytes]
) -> None:
    with ExitStack() as stack:
        for path, data in contents.items():
            stack.enter_context(in_use(path, damage(data)))
        operators = open_operators(shared)
        assert answers(operators) == answers(open_operators(None))
        assert {path: path.read_bytes() for path in shared.iterdir()} == {
            path: damage(data) for path, data in contents.items()
        }
        close(operators)


def test_an_intact_file_that_another_process_uses_is_mapped(
    open_operators: Open, shared: Path, contents: dict[Path, bytes]
) -> None:
    with ExitStack() as stack:
        for path, data in contents.items():
            stack.enter_context(in_use(path, data))
        operators = open_operators(shared)
        assert len(mapped_inodes(shared)) == 2
        assert answers(operators) == answers(open_operators(None))
        close(operators)


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_a_file_that_others_can_open_is_not_used(
    open_operators: Open, shared: Path, contents: dict[Path, bytes], mode: int
) -> None:
    for path, data in contents.items():
        path.write_bytes(data)
        path.chmod(mode)
    operators = open_operators(shared)
    assert not mapped_inodes(shared)
    assert answers(operators) == answers(open_operators(None))
    close(operators)
    assert len(list(shared.iterdir())) == 2


def test_a_link_is_not_followed(
    open_operators: Open, shared: Path, contents: dict[Path, bytes], tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.touch(mode=0o600)
    for path in contents:
        path.symlink_to(target)
    operators = open_operators(shared)
    assert target.read_bytes() == b""
    assert answers(operators) == answers(open_operators(None))
    close(operators)


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_a_folder_that_others_can_open_is_not_used(open_operators: Open, shared: Path, mode: int) -> None:
    shared.chmod(mode)
    operators = open_operators(shared)
    assert not list(shared.iterdir())
    assert answers(operators) == answers(open_operators(None))
    close(operators)


def test_without_the_folder_each_has_its_own(open_operators: Open, tmp_path: Path) -> None:
    operators = open_operators(tmp_path / "missing")
    assert answers(operators) == answers(open_operators(None))
    close(operators)


def test_other_weights_have_other_files(open_operators: Open, kernels_library: Path, shared: Path) -> None:
    operators = open_operators(shared)
    other = Operators.tiny(kernels_library, shared.with_name("other"), SHAPE, seed=7, shared_weights=shared)
    assert len(mapped_inodes(shared)) == 4
    assert answers(other) != answers(operators)
    close(operators)
    close(other)


def test_every_instruction_set_uses_the_same_file(
    open_operators: Open, shared: Path, computes: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, found = [], []
    for compute in computes:
        monkeypatch.setenv("DRAGOMAN_KERNELS", compute.name)  # type: ignore[attr-defined]
        opened.append(open_operators(shared))
        found.append(answers(opened[-1]))
    assert len(mapped_inodes(shared)) == 2
    assert all(other == found[0] for other in found)
    for operators in opened:
        close(operators)


def test_processes_that_start_at_once_map_the_same_files(
    open_operators: Open, kernels_library: Path, graphs: Path, shared: Path
) -> None:
    operators = open_operators(None)
    command = [sys.executable, "-m", "tests.kernels.sharing_process", *map(str, (kernels_library, graphs, shared))]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
                )
            )
            for _ in range(3)
        ]
        told = [process.stdout.readline() for process in processes if process.stdout]
        inodes = [process.stdout.readline() for process in processes if process.stdout]
        assert told == [f"{answers(operators)}\n"] * 3
        assert inodes == [f"{sorted(path.stat().st_ino for path in shared.iterdir())}\n"] * 3
        assert len(list(shared.iterdir())) == 2
        processes[0].kill()  # its locks end with it
        for process in processes:
            process.communicate(timeout=patient(30))
