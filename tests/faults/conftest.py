"""Fixtures of the reliability tests: each test records which promise it has proved, and by how many cases."""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.proofs import PROVED, Proved, write_proof
from tests.servers import ServerProcess

Start = Callable[..., ServerProcess]  # the fixture `start`

_PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture
def start(tiny_models: Path) -> Iterator[Start]:
    """Start servers in processes of their own, by default of the tiny model; they end with the test."""
    processes: list[ServerProcess] = []

    def run(*arguments: str, models: Path = tiny_models, **how: Any) -> ServerProcess:
        processes.append(ServerProcess(models, *arguments, **how))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()


@pytest.fixture
def proved(request: pytest.FixtureRequest) -> Iterator[Proved]:
    """Record how many cases of a promise this test has run: `proved("deadlines", cases=200, worst_steps=2)`.

    `promise` is a section of docs/reliability.md, `numbers` are any measurements. The record is written when the test
    is over, as failed unless the test passed.
    """
    notes: list[dict[str, Any]] = []

    def note(promise: str, cases: int, failures: int = 0, **numbers: float) -> None:
        notes.append({"promise": promise, "cases": cases, "failures": failures, "numbers": numbers})

    yield note
    form = "long" if request.node.get_closest_marker("full") else "short"
    if request.config.getoption("fused"):
        form += "_fused"
    for each in notes:
        failed = not request.node.stash.get(_PASSED, False)
        write_proof(
            _path(request.node.nodeid, str(each["promise"]), form),
            promise=each["promise"],
            cases=each["cases"],
            failures=max(each["failures"], int(failed)),
            numbers=each["numbers"],
            test=request.node.nodeid,
            form=form,
        )


def _path(node_id: str, promise: str, form: str) -> Path:
    name = "".join(c if c.isalnum() else "-" for c in node_id.removeprefix("tests/faults/"))
    return PROVED / f"{promise}--{form}--{name}.json"
