"""A gate in an engine: what it holds can't end before a test has looked at it."""

import threading
from typing import Any

import pytest

from tests.patience import patient
from tests.servers import InProcessServer


class Gate:
    """A gate that holds the worker of a model's engine, the server's first, before its next turn until it is opened."""

    def __init__(self, server: InProcessServer, monkeypatch: pytest.MonkeyPatch, name: str = "") -> None:
        model = next(model for model in server.server.models if model.name.startswith(name))
        (worker,) = model.engine.turns.workers
        self._is_reached, self._may_pass, run = threading.Event(), threading.Event(), worker.run

        def gated(*arguments: Any, **how: Any) -> Any:
            self._is_reached.set()
            assert self._may_pass.wait(patient(30))
            return run(*arguments, **how)

        monkeypatch.setattr(worker, "run", gated)

    def wait(self) -> None:
        """Wait until a turn is held."""
        assert self._is_reached.wait(patient(30))

    def open(self) -> None:
        """Let the turn pass that is held, and all after it."""
        self._may_pass.set()
