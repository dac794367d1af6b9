"""Our server with an injected fault, which a soak must find: `python -m tests.soak.planted_server leak serve ...`."""

import dataclasses
import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any

from service.cli.main import main
from service.observe.metrics import Metrics
from service.translation.pending import EngineBridge

LEAKED_BYTES = 2**20  # per call
CALLS_PER_THREAD = 50
ANSWERS_PER_WRONG_ONE = 1000


def leak() -> None:
    """Keep 1 MiB of every call."""
    kept: list[bytes] = []
    _at_each_call(lambda: kept.append(b"x" * LEAKED_BYTES))


def thread() -> None:
    """Start a thread that never ends, every fifty calls."""
    numbers = itertools.count(1)

    def start() -> None:
        if next(numbers) % CALLS_PER_THREAD == 0:
            threading.Thread(target=threading.Event().wait, daemon=True).start()

    _at_each_call(start)


def wrong() -> None:
    """Drop the last token of one translation in a thousand."""
    numbers = itertools.count(1)
    on_updates = EngineBridge.on_updates

    def altered(update: Any) -> Any:
        if not update.hypotheses or next(numbers) % ANSWERS_PER_WRONG_ONE:
            return update
        best = update.hypotheses[0]
        shorter = dataclasses.replace(best, token_ids=best.token_ids[:-1])
        return dataclasses.replace(update, hypotheses=(shorter, *update.hypotheses[1:]))

    def alter(self: EngineBridge, updates: Any, progress: Any) -> None:
        on_updates(self, [altered(update) for update in updates], progress)

    EngineBridge.on_updates = alter  # type: ignore[method-assign]


def _at_each_call(act: Callable[[], None]) -> None:
    call_started = Metrics.call_started

    def start(self: Metrics) -> None:
        act()
        call_started(self)

    Metrics.call_started = start  # type: ignore[method-assign]


PLANTS = {"leak": leak, "thread": thread, "wrong": wrong}

if __name__ == "__main__":
    PLANTS[sys.argv.pop(1)]()
    main()
