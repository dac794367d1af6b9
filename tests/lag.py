"""A plugin that finds tests which depend on timing: it delays threads where they hand work to each other.

Usage: `python -m pytest -p tests.lag --lag-seed 1 tests/unit tests/api`. A test that fails only with the plugin relies
on the usual order of events, and without it still fails once in a hundred runs on a busy machine.
"""

import asyncio
import concurrent.futures.thread
import functools
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from service.observe.metrics import Metrics, ModelMetrics
from service.observe.recent_errors import RecentErrors

LAG_SECONDS = 0.02
# The probabilities of a delay before each call and before its return.
_HANDOVERS: tuple[tuple[type, str, float, float], ...] = (
    (threading.Thread, "run", 0.3, 0.3),
    (threading.Event, "set", 0.0, 0.02),
    (concurrent.futures.thread._WorkItem, "run", 0.2, 0.2),
    (asyncio.BaseEventLoop, "_run_once", 0.01, 0.0),
    (asyncio.BaseEventLoop, "call_soon_threadsafe", 0.0, 0.02),
    # State that is updated after the caller has its answer.
    (Metrics, "call_finished", 0.3, 0.0),
    (ModelMetrics, "turn", 0.05, 0.0),
    (RecentErrors, "note", 0.3, 0.0),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the seed."""
    parser.addoption("--lag-seed", type=int, default=1, help="Which delays tests.lag plants.")


def pytest_configure(config: pytest.Config) -> None:
    """Install the delays in this process."""
    rng = random.Random(config.getoption("--lag-seed"))
    for kind, name, before, after in _HANDOVERS:
        setattr(kind, name, _late(getattr(kind, name), rng, before, after))


def _late(call: Callable[..., Any], rng: random.Random, before: float, after: float) -> Callable[..., Any]:
    @functools.wraps(call)
    def late(*args: Any, **kwargs: Any) -> Any:
        if rng.random() < before:
            time.sleep(LAG_SECONDS)  # waits for nothing: the delay itself is the purpose
        try:
            return call(*args, **kwargs)
        finally:
            if rng.random() < after:
                time.sleep(LAG_SECONDS)

    return late
