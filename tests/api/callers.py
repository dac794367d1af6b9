"""Callers that keep a server busy while something about it changes."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from dragoman_client import Client, Tls
from tests.servers import eventually


class Callers:
    """Callers that open a new connection for every few calls until they are stopped."""

    def __init__(self, address: str, tls: Tls | None, api_keys: Callable[[], str] = str, num_threads: int = 4) -> None:
        self.num_threads = num_threads
        self.num_calls = self.num_connections = 0
        self.errors: list[Exception] = []
        self._call = (address, tls, api_keys)
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(num_threads)
        for _ in range(num_threads):
            self._pool.submit(self._run)

    def _run(self) -> None:
        address, tls, api_keys = self._call
        while not self._stopped.wait(0.01):
            try:
                with Client(address, tls=tls, api_key=api_keys()) as client:
                    for _ in range(3):
                        assert len(client.translate(["Hello", "train"], "en", "de")) == 2
                        with self._lock:
                            self.num_calls += 1
            except Exception as error:
                self.errors.append(error)
            with self._lock:
                self.num_connections += 1

    def more_calls(self, number: int) -> None:
        enough = self.num_calls + number
        eventually(lambda: self.num_calls >= enough or bool(self.errors))

    def stop(self) -> None:
        self._stopped.set()
        self._pool.shutdown()
