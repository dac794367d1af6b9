"""`dragoman` that inflates compressed messages, and receives any number of messages at any time: without protections.

`python -m tests.faults.unguarded_server serve ...`
"""

from service.calls.open_calls import ByteBudget
from service.cli.main import main as dragoman
from service.faces.grpc import intake
from service.faces.grpc import server as grpc_server
from service.faces.grpc.intake import Receptions

_ENDLESS = 2**40


if __name__ == "__main__":
    intake.Memory.of = lambda *_: intake.Memory(  # type: ignore[method-assign]
        ByteBudget(_ENDLESS, 1), Receptions(_ENDLESS), Receptions(_ENDLESS), 1
    )
    grpc_server._ALGORITHMS, grpc_server._INFLATES = 7, True
    grpc_server.UNREAD_BYTES = 65_535  # gRPC's own
    dragoman()
