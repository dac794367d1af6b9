"""How many connections few file descriptors allow."""

import resource

import pytest

from service.process.ports import affordable_connections


@pytest.mark.parametrize(("limit", "expected"), [(1024, 768), (300, 150), (1, 1), (2**20, 10_000)])
def test_few_open_files_reduce_connections(limit: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert affordable_connections(10_000) == expected


def test_two_ports_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    assert affordable_connections(10_000, num_ports=2) == 384
    assert affordable_connections(100, num_ports=2) == 100
