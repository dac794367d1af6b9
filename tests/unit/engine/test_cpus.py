from pathlib import Path

import pytest

from service.engine.cpus import available_cpus, saturates_int8


@pytest.fixture
def eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)


@pytest.mark.usefixtures("eight_cpus")
@pytest.mark.parametrize(
    ("quota", "expected"),
    [("200000 100000", 2), ("50000 100000", 1), ("1600000 100000", 8), ("max 100000", 8), ("", 8), (None, 8)],
)
def test_the_smaller_of_affinity_and_quota(tmp_path: Path, quota: str | None, expected: int) -> None:
    path = tmp_path / "cpu.max"
    if quota is not None:
        path.write_text(quota)
    assert available_cpus(path) == expected


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ("processor : 0\nflags\t\t: fpu sse2 avx2 avx512f avx512_vnni\n", False),
        ("processor : 0\nflags\t\t: fpu sse2 avx2 avx_vnni\n", False),
        ("processor : 0\nflags\t\t: fpu sse2 avx2 avx512f\n", True),
        ("processor : 0\nFeatures\t: fp asimd asimddp\n", False),  # not x86
        (None, False),
    ],
)
def test_only_x86_without_vnni_saturates(tmp_path: Path, info: str | None, expected: bool) -> None:
    path = tmp_path / "cpuinfo"
    if info is not None:
        path.write_text(info)
    assert saturates_int8(path) is expected
