"""What tests of reliability share: each notes which promise it has proved, and by how many cases."""

import json
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.servers import REPOSITORY

PROVED = REPOSITORY / "build" / "reliability"


_PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture
def proved(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """Note how many cases of a promise this test has run: `proved("deadlines", cases=200, worst_steps=2)`.

    `promise` is a key of docs/reliability.md's table, `numbers` whatever was measured. It is written when the test is
    over, as failed unless the test passed.
    """
    notes: list[dict[str, object]] = []

    def note(promise: str, cases: int, failures: int = 0, **numbers: float) -> None:
        notes.append({"promise": promise, "cases": cases, "failures": failures, "numbers": numbers})

    yield note
    form = "long" if request.node.get_closest_marker("full") else "short"
    for each in notes:
        failed = not request.node.stash.get(_PASSED, False)
        record = each | {
            "failures": max(int(str(each["failures"])), int(failed)),
            "test": request.node.nodeid,
            "form": form,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "commit": _commit(),
        }
        _path(request.node.nodeid, str(each["promise"]), form).write_text(json.dumps(record, indent=2) + "\n")


def _path(node_id: str, promise: str, form: str) -> Path:
    PROVED.mkdir(parents=True, exist_ok=True)
    name = "".join(c if c.isalnum() else "-" for c in node_id.removeprefix("tests/faults/"))
    return PROVED / f"{promise}--{form}--{name}.json"


def _commit() -> str:
    command = ["git", "-C", str(REPOSITORY), "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    return found.stdout.strip() or "unknown"
