import math
import mmap
import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from service.observe import own_memory
from service.observe.own_memory import memory_bytes, memory_limit_bytes
from tests.patience import patient

MIB = 2**20
SIZE = 64 * MIB


def _tell_memory(to: Connection, memory: mmap.mmap) -> None:
    memory.find(b"x")  # reads all of it
    to.send(memory_bytes())
    to.recv()


def test_what_two_processes_share_counts_half_in_each() -> None:
    memory = mmap.mmap(-1, SIZE)
    memory.write(b"-" * SIZE)
    alone = memory_bytes()
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    child = multiprocessing.get_context("fork").Process(target=_tell_memory, args=(theirs, memory))
    child.start()
    try:
        assert ours.poll(patient(20))
        of_child = ours.recv()
        shared = memory_bytes()
        ours.send(None)
    finally:
        child.join(patient(20))
        child.kill()
    assert alone - shared > SIZE * 0.45, "half of it is the child's now"
    assert of_child > SIZE * 0.45
    assert alone < 100 * SIZE, "these are bytes"


def test_without_a_rollup_resident_pages_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(own_memory, "_ROLLUP", tmp_path / "missing")
    monkeypatch.setattr(own_memory, "resident_bytes", {os.getpid(): 300}.get)
    assert memory_bytes() == 300.0


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        pytest.param("0::/\n", {"memory.max": "1073741824\n"}, 2**30, id="a container's own group, version 2"),
        pytest.param("0::/\n", {"memory.max": "max\n"}, math.inf, id="no limit"),
        pytest.param("0::/\n", {}, math.inf, id="a machine without containers"),
        pytest.param(
            "0::/pod/server\n",
            {"pod/memory.max": "500\n", "pod/server/memory.max": "700\n"},
            500,
            id="the pod's is lower",
        ),
        pytest.param("0::/pod/server\n", {"memory.max": "600\n"}, 600, id="a path outside of what is mounted"),
        pytest.param(
            "4:cpu,cpuacct:/\n3:memory:/docker/a\n0::/\n",
            {"memory/docker/a/memory.limit_in_bytes": "800\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"},
            800,
            id="version 1",
        ),
        pytest.param(
            "3:memory:/\n",
            {"memory/memory.limit_in_bytes": "9223372036854771712\n"},
            math.inf,
            id="version 1, no limit",
        ),
    ],
)
def test_the_lowest_limit_of_control_groups(groups: str, files: dict[str, str], limit: float, tmp_path: Path) -> None:
    (listed := tmp_path / "cgroup").write_text(groups)
    for name, content in files.items():
        file = tmp_path / "mounted" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    assert memory_limit_bytes(listed, tmp_path / "mounted") == limit


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert memory_limit_bytes(tmp_path / "missing", tmp_path) == math.inf
