"""A DNS server on loopback for one name, whose addresses change: a stand-in for a headless Service."""

import socket
import struct
import threading
from collections.abc import Sequence
from typing import Self

_HEADER_BYTES = 12
_FLAGS = 0x8580  # an answer, authoritative, recursion desired and available
_A, _IN = 1, 1
_LIFE_SECONDS = 0  # of an answer in a cache


class ChangingName:
    """Answers with the current `addresses`, all IPv4, to every question for them."""

    def __init__(self) -> None:
        self.addresses: Sequence[str] = ()
        self.num_asked = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, name="DNS")

    def target(self, port: int) -> str:
        """Return gRPC's target for this port of all addresses."""
        return f"dns://127.0.0.1:{self._socket.getsockname()[1]}/dragoman.test:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        while True:
            asked, caller = self._socket.recvfrom(1024)
            if not asked:
                return
            self._socket.sendto(self._answer(asked), caller)

    def _answer(self, asked: bytes) -> bytes:
        question = asked[_HEADER_BYTES : asked.index(b"\0", _HEADER_BYTES) + 5]
        addresses: Sequence[str] = ()
        if question.endswith(struct.pack("!HH", _A, _IN)):
            addresses = self.addresses
            self.num_asked += 1
        name = struct.pack("!H", 0xC000 | _HEADER_BYTES)  # the question's
        record = name + struct.pack("!HHIH", _A, _IN, _LIFE_SECONDS, 4)
        header = asked[:2] + struct.pack("!HHHHH", _FLAGS, 1, len(addresses), 0, 0)
        return header + question + b"".join(record + socket.inet_aton(each) for each in addresses)
