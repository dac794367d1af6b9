"""Our own server with static batches, for comparison: a batch runs to its end before the next one starts.

Everything else is the same. Run as `python -m benchmarks.static_server serve ...`.
"""

import importlib
from typing import Any

from service.cli.main import main


def make_static() -> None:
    """Make the scheduler admit nothing while anything runs, and everything that waits once the batch has ended."""
    turns: Any = importlib.import_module("service.engine.turns")
    continuous = turns.schedule
    most_free = 0

    def schedule(candidates: Any, num_free_slots: int, *rest: Any, **more: Any) -> Any:
        nonlocal most_free
        most_free = max(most_free, num_free_slots)
        is_empty = num_free_slots == most_free
        return continuous(candidates if is_empty else (), num_free_slots, *rest, **more)

    turns.schedule = schedule


if __name__ == "__main__":
    make_static()
    main()
