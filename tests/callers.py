"""Callers that keep a server busy while something about it changes."""

import threading
from collections.abc import Callable

from dragoman_client import Client, Tls
from tests.patience import patient
from tests.servers import eventually


class Callers:
    """Threads that each make a call again and again during a `with` block; a call that fails ends its thread."""

    def __init__(self, *calls: Callable[[], object], pause_seconds: float = 0.01) -> None:
        self.failures: list[BaseException] = []
        self._num_answers = [0] * len(calls)
        self._pause_seconds = pause_seconds
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=each) for each in enumerate(calls)]

    def __enter__(self) -> "Callers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(patient(60))
            assert not thread.is_alive()

    @property
    def num_answers(self) -> int:
        return sum(self._num_answers)

    def wait_for_more(self, num_answers: int = 5) -> None:
        """Wait until each thread has that many more answers, or one has failed."""
        goals = [number + num_answers for number in self._num_answers]
        eventually(lambda: bool(self.failures) or all(map(int.__ge__, self._num_answers, goals)))

    def _run(self, number: int, call: Callable[[], object]) -> None:
        try:
            while not self._ended.wait(self._pause_seconds):
                call()
                self._num_answers[number] += 1
        except BaseException as error:
            self.failures.append(error)


def on_new_connections(address: str, tls: Tls | None = None, api_key: Callable[[], str] = str) -> Callers:
    """Return four callers that open a connection for every three calls."""

    def connect_and_call() -> None:
        with Client(address, tls=tls, api_key=api_key()) as client:
            for _ in range(3):
                assert len(client.translate(["Hello", "train"], "en", "de")) == 2

    return Callers(*[connect_and_call] * 4, pause_seconds=0.03)
