"""`dragoman` without a protection: `UNGUARDED=compression python -m tests.faults.unguarded_server serve ...`.

"compression": compressed messages are inflated; "memory": any number of messages is received at any time.
"""

import os

from service.calls.open_calls import ByteBudget
from service.cli.main import main as dragoman
from service.faces.grpc import intake
from service.faces.grpc import server as grpc_server
from service.faces.grpc.intake import Receptions

UNGUARDED = "UNGUARDED"
COMPRESSION, MEMORY = "compression", "memory"
_ENDLESS = 2**40


def main() -> None:
    if os.environ[UNGUARDED] == COMPRESSION:
        grpc_server._ALGORITHMS, grpc_server._INFLATES = 7, True
    else:
        memory = intake.Memory(ByteBudget(_ENDLESS, 1), Receptions(_ENDLESS), Receptions(_ENDLESS), 1)
        intake.Memory.of = lambda *_: memory  # type: ignore[method-assign]
        grpc_server.UNREAD_BYTES = 65_535  # gRPC's own
    dragoman()


if __name__ == "__main__":
    main()
