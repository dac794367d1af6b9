from pathlib import Path

import pytest

from service.engine.cpus import available_cpus


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
